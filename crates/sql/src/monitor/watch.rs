//! The monitor's thread: connections to all servers, and what is asked over them.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use super::{Answer, Doing, Server, ServerReader, Shared};
use crate::ServerError;

/// Between attempts to connect again.
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);
/// Part of the time that looking at sessions may take.
const SAMPLING_SHARE: u32 = 20;
/// How long connections have to take their leave.
const FAREWELL: Duration = Duration::from_millis(20);

/// Watches until it is asked to stop. Says to `opened` whether all servers could be asked.
pub(super) fn run<R: ServerReader>(
    runtime: Runtime,
    shared: &Arc<Shared<R::Reading>>,
    reader: &Arc<R>,
    opened: &mpsc::Sender<Result<(), ServerError>>,
) {
    runtime.block_on(async {
        let mut tasks = Vec::new();
        for node in 0..reader.nodes().len() {
            match Watch::open(shared, reader, node).await {
                Ok((watch, counters, samples)) => {
                    let watch = Arc::new(watch);
                    tasks.push(tokio::spawn(Arc::clone(&watch).answer(counters)));
                    tasks.push(tokio::spawn(watch.sample(samples)));
                }
                Err(error) => {
                    // Nobody waits only where the owner is gone, and then nothing is to be reported.
                    let _ = opened.send(Err(error));
                    return;
                }
            }
        }
        let _ = opened.send(Ok(()));
        shared.stop.notified().await;
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
        tokio::time::sleep(FAREWELL).await;
    });
    // A name that is being looked up is not waited for.
    runtime.shutdown_background();
}

/// One node, as its two tasks see it.
struct Watch<R: ServerReader> {
    shared: Arc<Shared<R::Reading>>,
    reader: Arc<R>,
    node: usize,
}

impl<R: ServerReader> Watch<R> {
    async fn open(
        shared: &Arc<Shared<R::Reading>>,
        reader: &Arc<R>,
        node: usize,
    ) -> Result<(Self, R::CounterLine, R::SampleLine), ServerError> {
        let watch = Self { shared: Arc::clone(shared), reader: Arc::clone(reader), node };
        let (mut counters, notes) = reader.open_counters(node).await?;
        let samples = reader.open_samples(node).await?;
        let (at, counted) = reader.read(&mut counters).await?;
        let mut nodes = shared.lock();
        let read = nodes[node].read(at, 0, counted);
        nodes[node].servers = read.into_iter().map(|(name, read)| Server::new(name, read)).collect();
        nodes[node].notes = notes;
        nodes[node].last_answer = Instant::now();
        drop(nodes);
        Ok((watch, counters, samples))
    }

    /// Reads the counters whenever they are asked for.
    async fn answer(self: Arc<Self>, mut line: R::CounterLine) {
        let mut connection = 0;
        loop {
            self.shared.asked[self.node].notified().await;
            self.ask();
            let answer = self.reader.read(&mut line).await;
            let lost = matches!(&answer, Err(error) if error.refusal().is_none());
            {
                let node = &mut self.shared.lock()[self.node];
                node.answer = match answer {
                    Ok((at, counted)) => Answer::Here(node.read(at, connection, counted)),
                    Err(_) => Answer::Failed,
                };
            }
            self.shared.answered.notify_all();
            if lost {
                self.shared.lock()[self.node].note(
                    "the connection that reads the server's counters broke: they are unknown until it was made again"
                        .to_owned(),
                );
                let (again, notes) = loop {
                    match self.reader.open_counters(self.node).await {
                        Ok(opened) => break opened,
                        Err(_) => tokio::time::sleep(RECONNECT_PAUSE).await,
                    }
                };
                // What is there now need not be what was there before.
                let node = &mut self.shared.lock()[self.node];
                notes.into_iter().for_each(|note| node.note(note));
                line = again;
                connection += 1;
            }
            self.answered();
        }
    }

    /// Looks at the sessions again and again.
    async fn sample(self: Arc<Self>, mut line: R::SampleLine) {
        loop {
            let begun = Instant::now();
            self.ask();
            match self.reader.sample(&mut line).await {
                Ok(found) => {
                    let mut nodes = self.shared.lock();
                    let servers = &mut nodes[self.node].servers;
                    for Doing { member, what, sessions } in found {
                        // An only server is called as its node is.
                        let server =
                            servers.iter_mut().find(|server| member.as_ref().is_none_or(|name| *name == server.name));
                        if let Some(server) = server {
                            *server.samples.entry(what).or_default() += sessions;
                        }
                    }
                    servers.iter_mut().for_each(|server| server.sampled_times += 1);
                }
                Err(error) if error.refusal().is_some() => {}
                Err(_) => {
                    line = loop {
                        match self.reader.open_samples(self.node).await {
                            Ok(line) => break line,
                            Err(_) => tokio::time::sleep(RECONNECT_PAUSE).await,
                        }
                    };
                }
            }
            self.answered();
            let pause = self.reader.sample_every().max(begun.elapsed() * SAMPLING_SHARE);
            tokio::time::sleep_until((begun + pause).into()).await;
        }
    }

    fn ask(&self) {
        let mut nodes = self.shared.lock();
        let node = &mut nodes[self.node];
        // A server that was asked nothing was not silent.
        if node.owed == 0 {
            node.last_answer = Instant::now();
        }
        node.owed += 1;
    }

    fn answered(&self) {
        let mut nodes = self.shared.lock();
        nodes[self.node].owed -= 1;
        nodes[self.node].last_answer = Instant::now();
    }
}
