// Kafka's names of resources and operations, and ACLs as sentences.
export const TYPES = ["TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"];

/** What can be done with each kind of resource: Kafka's AclEntry.supportedOperations. */
export const OPERATIONS_OF = {
  TOPIC: ["ALL", "READ", "WRITE", "CREATE", "DESCRIBE", "DELETE", "ALTER", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"],
  GROUP: ["ALL", "READ", "DESCRIBE", "DELETE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"],
  CLUSTER: ["ALL", "CREATE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "ALTER", "DESCRIBE"],
  TRANSACTIONAL_ID: ["ALL", "DESCRIBE", "WRITE", "TWO_PHASE_COMMIT"],
  DELEGATION_TOKEN: ["ALL", "DESCRIBE"],
  USER: ["ALL", "CREATE_TOKENS", "DESCRIBE_TOKENS"],
};
export const OPERATIONS = [...new Set(Object.values(OPERATIONS_OF).flat())];

/** "DESCRIBE_CONFIGS" is "describe configs". */
export const words = (name) => name.toLowerCase().replaceAll("_", " ");

export function sentence(acl) {
  const from = acl.host === "*" ? "" : ` from ${acl.host}`;
  const prefix = acl.pattern_type === "PREFIXED" ? "s with the prefix" : "";
  return `${words(acl.permission_type)} ${acl.principal}${from} to ${words(acl.operation)} ${words(acl.resource_type)}${prefix} ${acl.resource_name}`;
}
