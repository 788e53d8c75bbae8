// The views, in the order of the navigation. `key` follows g on the keyboard; `needs` names a field of /api/session
// without which the view is not shown.
export const VIEWS = [
  { name: "overview", title: "Overview", section: "Cluster", key: "o", load: () => import("./overview.js") },
];
