//! Waiting for a server that lets nobody in ends with the user's request to end.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use targets::ending::{EndSignal, LOOK};

use crate::ServerError;

/// Does something, unless the request to end comes before that is done. Must be called in a tokio runtime.
pub(crate) async fn unless_ended<T>(work: impl Future<Output = T>) -> Option<T> {
    unless(EndSignal::from_now_on(), work).await
}

async fn unless<T>(signal: EndSignal, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    let mut looks = tokio::time::interval(LOOK);
    poll_fn(|task| {
        if let Poll::Ready(done) = work.as_mut().poll(task) {
            return Poll::Ready(Some(done));
        }
        while looks.poll_tick(task).is_ready() {
            if signal.is_set() {
                return Poll::Ready(None);
            }
        }
        Poll::Pending
    })
    .await
}

/// Carries out what needs a runtime from code that has none.
///
/// # Errors
/// Those of `work`, or that no runtime can be made.
pub(crate) fn on_own_runtime<T>(work: impl Future<Output = Result<T, ServerError>>) -> Result<T, ServerError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let none = |error| ServerError::unfit(format!("this system gives no means to wait for connections: {error}"), None);
    let runtime = runtime.map_err(none)?;
    runtime.block_on(work)
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    // With a flag of its own: the one of the process would end what other tests connect meanwhile.
    #[test]
    fn what_waits_ends_with_the_request_and_what_begins_later_does_not() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        assert_eq!(runtime.block_on(unless_ended(async { 7 })), Some(7));
        let flag = Arc::new(AtomicBool::new(false));
        let signal = || EndSignal::of(Some(Arc::clone(&flag)));
        let asking = std::thread::spawn({
            let flag = Arc::clone(&flag);
            move || {
                std::thread::sleep(2 * LOOK);
                flag.store(true, Ordering::Relaxed);
            }
        });
        assert_eq!(runtime.block_on(unless(signal(), pending::<()>())), None);
        asking.join().unwrap();
        let later = async {
            tokio::time::sleep(3 * LOOK).await;
            7
        };
        assert_eq!(runtime.block_on(unless(signal(), later)), Some(7));
    }
}
