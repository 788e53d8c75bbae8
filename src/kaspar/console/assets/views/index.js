// The views, in the order of the navigation. `key` follows g on the keyboard; `needs` names a field of /api/session
// without which the view is not shown.
export const VIEWS = [
  { name: "overview", title: "Overview", section: "Cluster", key: "o", load: () => import("./overview.js") },
  { name: "brokers", title: "Brokers", section: "Cluster", key: "b", load: () => import("./brokers.js") },
  { name: "doctor", title: "Doctor", section: "Cluster", key: "d", load: () => import("./doctor.js") },
  { name: "topics", title: "Topics", section: "Data", key: "t", load: () => import("./topics.js") },
  { name: "messages", title: "Messages", section: "Data", key: "m", load: () => import("./messages.js") },
  { name: "schemas", title: "Schemas", section: "Data", key: "s", load: () => import("./schemas.js"), needs: "has_registry" },
  { name: "groups", title: "Groups", section: "Data", key: "c", load: () => import("./groups.js") },
  { name: "transactions", title: "Transactions", section: "Data", key: "x", load: () => import("./transactions.js") },
  { name: "pipelines", title: "Pipelines", section: "Data", key: "p", load: () => import("./pipelines.js"), needs: "has_pipelines" },
  { name: "acls", title: "ACLs", section: "Security", key: "a", load: () => import("./acls.js") },
  { name: "users", title: "Users", section: "Security", key: "u", load: () => import("./users.js") },
  { name: "quotas", title: "Quotas", section: "Security", key: "q", load: () => import("./quotas.js") },
];
