//! Decides by an event whether its page can be used again, may change without a script, or needs real time.

use chromiumoxide_cdp::cdp::browser_protocol::{
    network::{
        EventRequestWillBeSent, EventResponseReceived, EventWebSocketCreated, EventWebTransportCreated,
        ResourceType,
    },
    target::EventAttachedToTarget,
};
use platen_cdp::Event;

use super::recovery::request_will_be_sent;

/// Whether a response may be for something that changes by itself.
pub(super) fn may_change(received: &EventResponseReceived) -> bool {
    let response = &received.response;
    match received.r#type {
        // Every other common image format has an animated variant.
        ResourceType::Image => {
            !response.url.starts_with("data:")
                && !matches!(response.mime_type.as_str(), "image/jpeg" | "image/bmp")
        }
        ResourceType::Document => {
            let headers = response.headers.inner().as_object();
            response.mime_type != "text/html"
                || response.url.contains('#')
                || headers.is_none_or(|all| all.keys().any(|name| name.eq_ignore_ascii_case("refresh")))
        }
        _ => false,
    }
}

/// Whether an event reports an origin, a worker or a socket: something that may leave cookies, storage,
/// cache entries, credentials or running code.
pub(in crate::render) fn taints(event: &Event) -> bool {
    if event.is::<EventRequestWillBeSent>() {
        return request_will_be_sent(event).is_none_or(|sent| loads_origin(&sent));
    }
    needs_real_time(event)
}

/// Whether a request is for a URL that has an origin.
pub(super) fn loads_origin(sent: &EventRequestWillBeSent) -> bool {
    !["data:", "blob:", "about:"].iter().any(|scheme| sent.request.url.starts_with(scheme))
}

/// Whether an event reports something that virtual time does not stop.
pub(super) fn needs_real_time(event: &Event) -> bool {
    event.is::<EventWebSocketCreated>()
        || event.is::<EventWebTransportCreated>()
        || event.is::<EventAttachedToTarget>()
}
