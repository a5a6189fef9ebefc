//! Rows of requests that the cases insert.

use crate::prelude::*;

/// Inserts `count` rows of an account; the columns are expressions of `i`, from 1.
pub(super) async fn insert(
    app: &Service,
    account: &Account,
    count: u32,
    columns: &[(&str, &str)],
) -> Result<()> {
    let mut all = vec![
        ("attempt_id", "random()".to_owned()),
        ("account_id", format!("'{}'", account.id)),
        ("key_id", format!("'{}'", account.key_id)),
        ("key_name", "'k'".to_owned()),
        ("endpoint", "'render'".to_owned()),
        ("format", "'png'".to_owned()),
        ("status", "200".to_owned()),
        ("counted", "0".to_owned()),
        ("ms", "1".to_owned()),
        ("at", format!("{} - i", now()?)),
        ("request_id", "'row-' || i".to_owned()),
    ];
    for (name, value) in columns {
        all.retain(|(known, _)| known != name);
        all.push((name, (*value).to_owned()));
    }
    let (names, values): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    let (names, values) = (names.join(", "), values.join(", "));
    let sql = format!(
        "INSERT INTO attempts ({names}) WITH RECURSIVE n(i) AS \
         (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) SELECT {values} FROM n"
    );
    app.execute(&sql).await?;
    Ok(())
}

pub(super) fn now() -> Result<u64> {
    Ok(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs())
}
