// Changes that ask once, and say how they ended.
import { change } from "../../js/api.js";
import { confirm } from "../../js/components/dialog.js";
import { toast } from "../../js/components/toast.js";

/** Asks `question` (as `confirm` takes it), then makes the change. True if it was made. */
export async function askAndChange(question, method, url, { body, done }) {
  if (!(await confirm(question))) return false;
  try {
    await change(method, url, body);
  } catch (problem) {
    toast(problem.message, "bad");
    return false;
  }
  toast(done);
  return true;
}
