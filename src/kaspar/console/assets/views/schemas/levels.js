// The compatibility levels and modes of a registry.
export const LEVELS = ["BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE", "NONE"];
export const MODES = ["READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT"];
