//! The dashboard: in a real browser as users see it, and over HTTP as attackers do.

mod access;
mod accessibility;
mod account_deletion;
mod account_user;
mod accounts;
mod attacks;
mod editor;
mod extremes;
mod header;
mod hostile;
mod kept_forms;
mod keys;
mod languages;
mod limits;
mod links;
mod log;
mod lost_work;
mod members;
mod names;
mod offers;
mod operator;
mod overview;
mod owners;
mod panes;
mod playground;
mod playground_files;
mod playground_state;
mod preview;
mod request_export;
mod request_list;
mod requests;
mod retention;
mod sign_in;
mod support;
mod template_files;
mod template_list;

use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    [
        account_deletion::cases(),
        account_user::cases(),
        operator::cases(),
        accounts::cases(),
        retention::cases(),
        panes::cases(),
        playground::cases(),
        playground_files::cases(),
        playground_state::cases(),
        preview::cases(),
        requests::cases(),
        request_list::cases(),
        request_export::cases(),
        sign_in::cases(),
        access::cases(),
        attacks::cases(),
        header::cases(),
        hostile::cases(),
        limits::cases(),
        links::cases(),
        log::cases(),
        editor::cases(),
        kept_forms::cases(),
        keys::cases(),
        lost_work::cases(),
        members::cases(),
        overview::cases(),
        owners::cases(),
        names::cases(),
        offers::cases(),
        template_files::cases(),
        template_list::cases(),
        languages::cases(),
        accessibility::cases(),
        extremes::cases(),
    ]
    .concat()
}
