//! Work of a request that the response does not wait for.
//!
//! Invariant: while a [`Background`] exists, and until its work ends, one task of the request is idle. The executor
//! of wit-bindgen 0.57 asks the platform to yield whenever it has polled all its tasks, which an idle task prevents.
//! On Spin such a yield between the head and the body of a message sends them in two packets, and Nagle's algorithm
//! holds the second one back until the first is acknowledged, after 40 ms on a connection that is kept alive.

use std::{
    cell::RefCell,
    future::poll_fn,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
};

use spin_sdk::wit_bindgen;

/// A task for the work of one request. It ends when this is dropped and all work has ended.
pub struct Background(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    work: Vec<Pin<Box<dyn Future<Output = ()>>>>,
    /// The waker of the task, once it is idle.
    waker: Option<Waker>,
    is_closed: bool,
}

impl Background {
    /// Starts the task.
    #[must_use]
    pub fn start() -> Self {
        let state = Rc::<RefCell<State>>::default();
        let task = Rc::clone(&state);
        wit_bindgen::spawn(poll_fn(move |context| poll(&task, context)));
        Self(state)
    }

    /// Waits until the task is idle, which it is after the handler has waited for anything.
    pub async fn idle(&self) {
        poll_fn(|context| {
            if self.0.borrow().waker.is_some() {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// Begins the work now, and continues it in the task.
    pub fn run(&self, work: impl Future<Output = ()> + 'static) {
        let mut work: Pin<Box<dyn Future<Output = ()>>> = Box::pin(work);
        let waker = self.0.borrow().waker.clone().unwrap_or_else(|| Waker::noop().clone());
        if work.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            self.0.borrow_mut().work.push(work);
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let mut state = self.0.borrow_mut();
        state.is_closed = true;
        if state.work.is_empty()
            && let Some(waker) = state.waker.take()
        {
            waker.wake();
        }
    }
}

fn poll(state: &RefCell<State>, context: &mut Context<'_>) -> Poll<()> {
    let mut work = std::mem::take(&mut state.borrow_mut().work);
    work.retain_mut(|work| work.as_mut().poll(context).is_pending());
    let mut state = state.borrow_mut();
    state.work.append(&mut work);
    state.waker = Some(context.waker().clone());
    if state.is_closed && state.work.is_empty() { Poll::Ready(()) } else { Poll::Pending }
}
