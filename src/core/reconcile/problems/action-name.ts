import { objectAt, stringAt } from "../../../runtime/json.ts";
import type { Action } from "../decision.ts";

/** The name of the object that an action creates, changes or deletes. */
export function actionName(action: Action): string {
  return "name" in action ? action.name : (stringAt(objectAt(action.manifest, "metadata"), "name") ?? "");
}
