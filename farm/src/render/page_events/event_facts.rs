//! What an event says: whether its page can be used again, may change without a script, or needs real time, and which
//! request it is about.
//!
//! Without `requestWillBeSent` a picture is taken too early, and without the end of a request a job waits
//! until its deadline, so these events are read even if their generated types fail. The types fail on values
//! that the farm does not read: on enums that Chromium extends (`CorsError`, `BlockedReason`, the type of an
//! initiator, the referrer policy) and on mandatory fields that another version does not send (`charset` of
//! a redirect's response). The fields that the farm reads are then parsed with placeholders for the others.

use chromiumoxide_cdp::cdp::browser_protocol::{
    network::{
        EventLoadingFailed, EventLoadingFinished, EventRequestWillBeSent, EventResponseReceived,
        EventWebSocketCreated, EventWebTransportCreated, ResourceType,
    },
    target::EventAttachedToTarget,
};
use platen_cdp::Event;
use serde_json::{Value, from_value, json};

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

/// `None` if the event has no request id, loader or URL.
pub(super) fn request_will_be_sent(event: &Event) -> Option<EventRequestWillBeSent> {
    event.parse().ok().or_else(|| {
        let fields = event.fields();
        let mut known = json!({
            "requestId": fields["requestId"], "loaderId": fields["loaderId"], "frameId": fields["frameId"],
            "documentURL": "", "timestamp": 0, "wallTime": 0, "redirectHasExtraInfo": false,
            "initiator": { "type": "other" },
            "request": {
                "url": fields["request"]["url"], "method": "", "headers": {}, "initialPriority": "Low",
                "referrerPolicy": "no-referrer",
            },
        });
        if fields["type"].as_str().is_some_and(|name| name.parse::<ResourceType>().is_ok()) {
            known["type"] = fields["type"].clone();
        }
        from_value(known).ok()
    })
}

/// `None` if the event has no request id.
pub(super) fn loading_finished(event: &Event) -> Option<EventLoadingFinished> {
    event.parse().ok().or_else(|| {
        let known =
            json!({ "requestId": event.fields()["requestId"], "timestamp": 0, "encodedDataLength": 0 });
        from_value(known).ok()
    })
}

/// `None` if the event has no request id or error.
pub(super) fn loading_failed(event: &Event) -> Option<EventLoadingFailed> {
    event.parse().ok().or_else(|| {
        let fields = event.fields();
        let cancelled = fields["canceled"] == Value::Bool(true);
        let known = json!({
            "requestId": fields["requestId"], "errorText": fields["errorText"], "canceled": cancelled,
            "timestamp": 0, "type": ResourceType::Other,
        });
        from_value(known).ok()
    })
}
