//! The monitor's thread: connections to all servers, and what is asked over them.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use super::line::{CounterLine, SampleLine};
use super::{Answer, MonitorRequest, PostgresError, Shared};

/// Between attempts to connect again.
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);
/// Part of the time that looking at sessions may take.
const SAMPLING_SHARE: u32 = 20;
/// How long connections have to take their leave.
const FAREWELL: Duration = Duration::from_millis(20);

/// Watches until it is asked to stop. Says to `opened` whether all servers could be asked.
pub(super) fn run(
    runtime: Runtime,
    shared: &Arc<Shared>,
    request: MonitorRequest,
    opened: &mpsc::Sender<Result<(), PostgresError>>,
) {
    runtime.block_on(async {
        let mut tasks = Vec::new();
        let request = Arc::new(request);
        for node in 0..request.connector.nodes().len() {
            match Watch::open(shared, &request, node).await {
                Ok((watch, counters, samples)) => {
                    tasks.push(tokio::spawn(watch.clone().answer(counters)));
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

/// One server, as its two tasks see it.
#[derive(Clone)]
struct Watch {
    shared: Arc<Shared>,
    request: Arc<MonitorRequest>,
    node: usize,
}

impl Watch {
    async fn open(
        shared: &Arc<Shared>,
        request: &Arc<MonitorRequest>,
        node: usize,
    ) -> Result<(Self, CounterLine, SampleLine), PostgresError> {
        let watch = Self { shared: Arc::clone(shared), request: Arc::clone(request), node };
        let mut counters = CounterLine::open(request, node).await?;
        let samples = SampleLine::open(request, node).await?;
        let first = counters.read(0).await.map_err(|error| {
            PostgresError::of(&request.connector.nodes()[node], "read the server's counters", &error)
        })?;
        let mut nodes = shared.lock();
        nodes[node].notes = std::mem::take(&mut counters.notes);
        nodes[node].base = Some(first);
        nodes[node].last_answer = Instant::now();
        drop(nodes);
        Ok((watch, counters, samples))
    }

    /// Reads the counters whenever they are asked for.
    async fn answer(self, mut line: CounterLine) {
        let mut connection = 0;
        loop {
            self.shared.asked[self.node].notified().await;
            self.ask();
            let read = line.read(connection).await;
            let lost = read.as_ref().is_err_and(|error| error.as_db_error().is_none() || line.is_closed());
            let answer = match read {
                Ok(reading) => Answer::Here(Box::new(reading)),
                Err(_) => Answer::Failed,
            };
            self.shared.lock()[self.node].answer = answer;
            self.shared.answered.notify_all();
            if lost {
                self.shared.lock()[self.node].note(
                    "the connection that reads the server's counters broke: they are unknown until it was made again"
                        .to_owned(),
                );
                line = loop {
                    match CounterLine::open(&self.request, self.node).await {
                        Ok(line) => break line,
                        Err(_) => tokio::time::sleep(RECONNECT_PAUSE).await,
                    }
                };
                connection += 1;
            }
            self.answered();
        }
    }

    /// Looks at the sessions again and again.
    async fn sample(self, mut line: SampleLine) {
        loop {
            let begun = Instant::now();
            self.ask();
            match line.sample().await {
                Ok(found) => {
                    let mut nodes = self.shared.lock();
                    let node = &mut nodes[self.node];
                    for (doing, sessions) in found {
                        *node.samples.entry(doing).or_default() += sessions;
                    }
                    node.sampled_times += 1;
                }
                Err(_) if !line.is_closed() => {}
                Err(_) => {
                    line = loop {
                        match SampleLine::open(&self.request, self.node).await {
                            Ok(line) => break line,
                            Err(_) => tokio::time::sleep(RECONNECT_PAUSE).await,
                        }
                    };
                }
            }
            self.answered();
            let pause = self.request.sample_every.max(begun.elapsed() * SAMPLING_SHARE);
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
