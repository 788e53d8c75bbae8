// Runs before the first paint, so that a chosen theme does not flash in late. js/theme.js changes it.
"use strict";
try {
  document.documentElement.dataset.theme = localStorage.getItem("kaspar.theme") || "system";
} catch {
  document.documentElement.dataset.theme = "system"; // storage is turned off
}
