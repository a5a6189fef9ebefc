//! The shape of the migrations.

use super::*;

#[test]
fn steps_are_numbered_without_gaps_and_each_is_one_statement() {
    for (index, step) in MIGRATIONS.iter().enumerate() {
        assert_eq!(step.number as usize, index + 1, "{}", step.name);
        let outside_triggers = step.sql.split(" BEGIN ").next().unwrap();
        assert!(!outside_triggers.contains(';'), "{}", step.name);
        assert_eq!(step.sql.contains(';'), step.sql.ends_with("; END"), "{}", step.name);
    }
}
