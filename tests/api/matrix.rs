//! Which cases run on other deployments than the first one.

use platen_harness::case::Matrix;

const SQLD: &str = "sqld";
const SQLD_JWT: &str = "sqld-jwt";
const SPIN_FILE: &str = "spin-file";
const SPIN_SQLD: &str = "spin-sqld";

/// Cases whose result depends on the database or on the platform. All run on the first deployment.
pub(crate) const MATRIX: &Matrix = &[
    // What each way to the database must give: counters that are exact, and errors.
    ("quota/", &[SQLD, SQLD_JWT, SPIN_FILE, SPIN_SQLD]),
    ("database/", &[SQLD, SQLD_JWT, SPIN_FILE, SPIN_SQLD]),
    ("claims_ahead/", &[SQLD, SPIN_FILE, SPIN_SQLD]),
    ("links/", &[SQLD, SPIN_SQLD]),
    ("account_limits/", &[SQLD_JWT, SPIN_SQLD]),
    ("crash/", &[SQLD_JWT, SPIN_SQLD]),
    ("faults/", &[SQLD_JWT, SPIN_SQLD]),
    ("overload/", &[SQLD_JWT, SPIN_SQLD]),
    ("statements/", &[SQLD_JWT]),
    ("mcp/server", &[SQLD_JWT]),
    ("template/", &[SQLD_JWT, SPIN_SQLD]),
    // Statements with many rows or with concurrent changes.
    ("dashboard/log/", &[SPIN_SQLD]),
    ("dashboard/names/", &[SQLD_JWT, SPIN_SQLD]),
    ("dashboard/overview/", &[SQLD_JWT, SPIN_SQLD]),
    ("dashboard/request", &[SQLD_JWT, SPIN_SQLD]),
    ("dashboard/retention/", &[SQLD_JWT, SPIN_SQLD]),
    ("dashboard/template_list/", &[SQLD_JWT]),
    // What the platform passes on: heads, bodies, files, and the way to the farm.
    ("auth/", &[SPIN_SQLD]),
    ("dashboard/access/", &[SPIN_SQLD]),
    ("dashboard/accounts/", &[SPIN_SQLD]),
    ("dashboard/attacks/", &[SPIN_SQLD]),
    ("dashboard/files/", &[SPIN_SQLD]),
    ("dashboard/keys", &[SPIN_SQLD]),
    ("dashboard/lost_work/", &[SPIN_SQLD]),
    ("dashboard/members/", &[SPIN_SQLD]),
    ("dashboard/operator", &[SPIN_SQLD]),
    ("dashboard/playground/", &[SPIN_SQLD]),
    ("dashboard/sign_in", &[SPIN_SQLD]),
    ("dashboard/versions", &[SPIN_SQLD]),
    ("farms/", &[SPIN_SQLD]),
    ("file_names/", &[SPIN_SQLD]),
    ("golden/invalid_bodies", &[SPIN_SQLD]),
    ("golden/valid", &[SPIN_SQLD]),
    ("headers/", &[SPIN_SQLD]),
    ("jinja/a_failure", &[SPIN_SQLD]),
    ("jinja/fills_pages", &[SPIN_SQLD]),
    ("limits/", &[SPIN_SQLD]),
    ("order/", &[SPIN_SQLD]),
    ("own_pages/", &[SPIN_SQLD]),
    ("relay/", &[SPIN_SQLD]),
    ("trace/", &[SPIN_SQLD]),
    ("uploads/", &[SPIN_SQLD]),
];
