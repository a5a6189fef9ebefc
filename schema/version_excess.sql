-- Templates with more versions than are kept. Filled when the number is lowered, so that pruning need not look at all
-- templates.
CREATE TABLE version_excess (template_id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
