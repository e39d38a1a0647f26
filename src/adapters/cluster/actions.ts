/**
 * Carries out a job's creates, updates and deletes on one cluster. It serves users who share a cluster: no object of
 * another owner is changed or deleted.
 */
import { isOneAdmission, LABEL } from "../../core/job/labels.ts";
import type { Action, ActOutcome } from "../../core/reconcile/decision.ts";
import type { ClaimAction } from "../../core/reconcile/objects/claim.ts";
import { unreachable as ruledOut } from "../../runtime/assert.ts";
import type { JsonObject } from "../../runtime/json.ts";
import { arrayAt, objectAt, stringAt, stringMapAt } from "../../runtime/json.ts";
import { type AnchorOptions, Anchors } from "./anchors.ts";
import type { KubeRequest, KubeResult } from "./client.ts";
import { objectView, ownJobUid } from "./kept-objects.ts";
import type { KubeFailure } from "./kube-failure.ts";
import { PARTS, partPatch } from "./parts.ts";
import { sshSecretData } from "./ssh-keys.ts";
import type { WriteQueue } from "./write-queue.ts";

type ActionsOptions = AnchorOptions & {
  /** Where all writes wait until the cluster bears them. */
  readonly writes: WriteQueue;
  /** Whether a missing namespace is created. Otherwise the action fails with `NotFound`. */
  readonly createNamespaces: boolean;
};

type Deletion = {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resource: string;
  /** Omitted: `v1`. */
  readonly apiVersion?: string;
  readonly force?: boolean;
};
type Creation = { readonly namespace: string; readonly manifest: JsonObject; readonly resource: string };
type OwnedAction = Extract<Action, { readonly anchor: string }>;

/**
 * Carries out actions on one cluster. Doing one twice is harmless: names are fixed, an existing object is accepted only
 * if it has our job, admission and anchor, and only the object with the given uid is deleted. Nothing is retried here.
 */
export class Actions {
  readonly #options: ActionsOptions;
  readonly anchors: Anchors;

  constructor(options: ActionsOptions) {
    this.#options = options;
    this.anchors = new Anchors(options);
  }

  act(action: Action, signal: AbortSignal): Promise<ActOutcome> {
    switch (action.kind) {
      case "createAnchor":
        return this.#createAnchor({ ...action, resource: "configmaps" }, signal);
      case "createPod":
        return this.#createOwned(action, "pods", signal);
      case "createService":
        return this.#createOwned(action, "services", signal);
      case "createPodGroup":
        return this.#createOwned(action, "podgroups", signal);
      case "updatePodGroup":
        return this.#update(action, signal);
      case "createPart":
      case "updatePart":
        return this.#part(action, signal);
      case "deletePod":
        return this.#delete({ ...action, resource: "pods" }, signal);
      case "deleteService":
        return this.#delete({ ...action, resource: "services" }, signal);
      case "deletePodGroup":
        return this.#delete({ ...action, resource: "podgroups" }, signal);
      case "deleteConfigMap":
      case "deleteAnchor":
        return this.#delete({ ...action, resource: "configmaps" }, signal);
      default:
        return ruledOut(action);
    }
  }

  /** Changes an object's owner. Reads the object again, a few times, if others change it meanwhile. */
  async claim(action: ClaimAction, signal: AbortSignal): Promise<ActOutcome> {
    for (let tries = 1; ; tries++) {
      const claimed = await this.#claimOnce(action, signal);
      const moved = claimed.kind === "failed" && claimed.reason === "Conflict";
      if (!moved || tries === ADOPTIONS_MAX) return claimed;
    }
  }

  async #claimOnce({ kind, namespace, object, name, uid, anchor }: ClaimAction, signal: AbortSignal) {
    const path = `/api/v1/namespaces/${namespace}/${object}s/${name}`;
    const found = await this.#options.client.request({ method: "GET", path }, signal);
    if (found.kind === "failed") return failed(found);
    const metadata = objectAt(found.object, "metadata");
    if (metadata["uid"] !== uid) return successor(path);
    const others = arrayAt(metadata, "ownerReferences").filter((owner) => stringAt(owner, "uid") !== anchor.uid);
    const { controllerUid, deleting } = objectView(found.object);
    if ((controllerUid === anchor.uid) === (kind === "adopt")) return ALREADY;
    if (kind === "adopt" && (controllerUid !== null || deleting)) return controlled(path);
    const ownerReferences = kind === "adopt" ? [...others, ownerReference(anchor.name, anchor.uid)] : others;
    const annotations = { [LABEL.released]: kind === "release" ? "true" : null };
    const body = { metadata: { uid, resourceVersion: metadata["resourceVersion"], ownerReferences, annotations } };
    const patched = await this.#write({ method: "PATCH", path, body }, signal);
    return patched.kind === "ok" ? DONE : failed(patched);
  }

  async #createAnchor(creation: Creation, signal: AbortSignal): Promise<ActOutcome> {
    const created = await this.#create(creation, signal);
    const key = `${creation.namespace}/${nameOf(creation.manifest)}`;
    if (created.kind === "ok") {
      this.anchors.created(key, objectView(created.object).uid);
      return { kind: "done" };
    }
    if (created.reason !== "AlreadyExists") return failed(created);
    const found = await this.#read(creation, signal);
    if (found.kind === "failed") return failed(found);
    const stranger = this.#whyNotOurs(creation.manifest, found.object);
    if (stranger !== null) return taken(creation, stranger);
    this.anchors.created(key, objectView(found.object).uid);
    return { kind: "already" };
  }

  async #part(action: OwnedAction, signal: AbortSignal): Promise<ActOutcome> {
    const kind = stringAt(action.manifest, "kind") ?? "";
    const resource = PARTS[kind];
    if (resource === undefined)
      return {
        kind: "failed",
        reason: "UnknownKind",
        message: `a kind may not make a ${kind}: only ${Object.keys(PARTS).join(", ")}`,
      };
    if (kind === "Secret") return this.#createKeys(action, signal);
    if (kind === "PersistentVolumeClaim") return this.#createClaim(action, resource, signal);
    if (action.kind === "updatePart") return this.#updatePart(action, resource, signal);
    const made = await this.#createOwned(action, resource, signal);
    if (made.kind !== "already") return made;
    const updated = await this.#updatePart(action, resource, signal);
    return updated.kind === "failed" ? updated : ALREADY;
  }

  /**
   * Makes the keys of an admission. Its name has the uid of the job and the number of the admission, so one that exists
   * is ours: no right to read secrets is needed.
   */
  async #createKeys({ namespace, manifest, anchor: name }: OwnedAction, signal: AbortSignal): Promise<ActOutcome> {
    const labels = stringMapAt(objectAt(manifest, "metadata"), "labels");
    const anchor = await this.anchors.find({ namespace, name }, labels);
    if (anchor.kind === "failed") return failed(anchor);
    const data = await sshSecretData();
    const owned = withOwners({ ...manifest, data, immutable: true }, [ownerReference(name, anchor.uid)]);
    const created = await this.#create({ namespace, resource: "secrets", manifest: owned }, signal);
    if (created.kind === "ok") return DONE;
    return created.reason === "AlreadyExists" ? ALREADY : failed(created);
  }

  /** Makes a volume claim. One that outlives its job belongs to nobody, and is used again if it exists. */
  async #createClaim(action: OwnedAction, resource: string, signal: AbortSignal): Promise<ActOutcome> {
    const { namespace, manifest } = action;
    if (stringMapAt(objectAt(manifest, "metadata"), "annotations")[LABEL.retained] === undefined) {
      return this.#createOwned(action, resource, signal);
    }
    const creation = { namespace, resource, manifest };
    const created = await this.#create(creation, signal);
    if (created.kind === "ok") return DONE;
    if (created.reason !== "AlreadyExists") return failed(created);
    const found = await this.#read(creation, signal);
    if (found.kind === "failed") return failed(found);
    return objectView(found.object).deleting ? taken(creation, "is being deleted") : ALREADY;
  }

  /**
   * Gives a part its present content, and creates it if it is gone. Reads the part again, a few times, if others change
   * it meanwhile.
   */
  async #updatePart(action: OwnedAction, resource: string, signal: AbortSignal): Promise<ActOutcome> {
    const { namespace, manifest } = action;
    const labels = stringMapAt(objectAt(manifest, "metadata"), "labels");
    const anchor = await this.anchors.find({ namespace, name: action.anchor }, labels);
    if (anchor.kind === "failed") return failed(anchor);
    const owner = ownerReference(action.anchor, anchor.uid);
    for (let tries = 1; ; tries++) {
      const revised = await this.#revise({ namespace, manifest, resource }, owner, signal);
      if (revised.kind === "failed" && revised.reason === "NotFound" && action.kind === "updatePart")
        return this.#createOwned(action, resource, signal);
      const moved = revised.kind === "failed" && revised.reason === "Conflict";
      if (!moved || tries === ADOPTIONS_MAX) return revised;
    }
  }

  /** Changes only the object and version that was found to be ours. */
  async #revise(creation: Creation, owner: JsonObject, signal: AbortSignal): Promise<ActOutcome> {
    const found = await this.#read(creation, signal);
    if (found.kind === "failed") return failed(found);
    const stranger = this.#whyNotOurs(creation.manifest, found.object);
    if (stranger !== null) return taken(creation, stranger);
    const { controllerUid } = objectView(found.object);
    if (controllerUid !== null && controllerUid !== owner["uid"])
      return taken(creation, "is controlled by another object");
    const patch = partPatch(found.object, creation.manifest);
    if (patch === null && controllerUid !== null) return ALREADY;
    const { uid, resourceVersion, ownerReferences } = objectAt(found.object, "metadata");
    const owners = Array.isArray(ownerReferences) ? ownerReferences : [];
    const adopted = controllerUid === null ? { ownerReferences: [...owners, owner] } : {};
    const body = { ...patch, metadata: { ...objectAt(patch, "metadata"), uid, resourceVersion, ...adopted } };
    const patched = await this.#write({ method: "PATCH", path: pathOf(creation), body }, signal);
    return patched.kind === "ok" ? DONE : failed(patched);
  }

  async #createOwned(action: OwnedAction, resource: string, signal: AbortSignal): Promise<ActOutcome> {
    const { namespace, manifest } = action;
    const labels = stringMapAt(objectAt(manifest, "metadata"), "labels");
    const anchor = await this.anchors.find({ namespace, name: action.anchor }, labels);
    if (anchor.kind === "failed") return failed(anchor);
    const owner = ownerReference(action.anchor, anchor.uid);
    const creation = { namespace, resource, manifest: withOwners(manifest, [owner]) };
    const created = await this.#create(creation, signal);
    if (created.kind === "ok") return { kind: "done" };
    if (created.reason !== "AlreadyExists") return failed(created);
    for (let tries = 1; ; tries++) {
      const accepted = await this.#accept(creation, owner, signal);
      const moved = accepted.kind === "failed" && accepted.reason === "Conflict";
      if (!moved || tries === ADOPTIONS_MAX) return accepted;
    }
  }

  /**
   * Decides about an existing object with our name: accepts ours, adopts one without a controller, rejects a foreign
   * one.
   */
  async #accept(creation: Creation, owner: JsonObject, signal: AbortSignal): Promise<ActOutcome> {
    const found = await this.#read(creation, signal);
    if (found.kind === "failed") return failed(found);
    const stranger = this.#whyNotOurs(creation.manifest, found.object);
    if (stranger !== null) return taken(creation, stranger);
    const { controllerUid } = objectView(found.object);
    if (controllerUid === owner["uid"]) return { kind: "already" };
    if (controllerUid !== null) return taken(creation, "is controlled by another object");
    return this.#adopt(creation, found.object, owner, signal);
  }

  async #adopt(creation: Creation, object: JsonObject, owner: JsonObject, signal: AbortSignal): Promise<ActOutcome> {
    const metadata = objectAt(object, "metadata");
    const guards = { uid: metadata["uid"], resourceVersion: metadata["resourceVersion"] };
    const ownerReferences = [...arrayAt(metadata, "ownerReferences"), owner];
    const body = { metadata: { ...guards, ownerReferences } };
    const patched = await this.#write({ method: "PATCH", path: pathOf(creation), body }, signal);
    if (patched.kind === "ok") return { kind: "already" };
    // A later object of that name has another uid, and a uid cannot be changed. So ours was not examined: it is a
    // conflict.
    return failed(patched.reason === "Invalid" ? { ...patched, reason: "Conflict" } : patched);
  }

  /**
   * Why an existing object is not the one that we wanted to create. Null: it belongs to this installation and to the
   * same job and admission, and is not being deleted.
   */
  #whyNotOurs(wanted: JsonObject, found: JsonObject): string | null {
    const view = objectView(found);
    if (view.deleting) return "is being deleted";
    const labels = stringMapAt(objectAt(wanted, "metadata"), "labels");
    if (ownJobUid(found, this.#options.installation) !== labels[LABEL.jobUid]) return "belongs to something else";
    return isOneAdmission(view.labels, labels) ? null : "belongs to another admission";
  }

  /** Updates a PodGroup's spec and annotations. The status that its scheduler writes stays. */
  async #update(action: Extract<Action, { kind: "updatePodGroup" }>, signal: AbortSignal): Promise<ActOutcome> {
    const { namespace, manifest, uid } = action;
    const path = pathOf({ namespace, manifest, resource: "podgroups" });
    const annotations = objectAt(objectAt(manifest, "metadata"), "annotations");
    const body = { metadata: { uid, annotations }, spec: replacing(objectAt(manifest, "spec")) };
    const patched = await this.#write({ method: "PATCH", path, body }, signal);
    return patched.kind === "ok" ? DONE : failed(patched);
  }

  async #delete(target: Deletion, signal: AbortSignal): Promise<ActOutcome> {
    const path = `${collectionOf(target)}/${target.name}`;
    const grace = target.force === true ? { gracePeriodSeconds: 0 } : {};
    const body = { preconditions: { uid: target.uid }, propagationPolicy: "Background", ...grace };
    const deleted = await this.#write({ method: "DELETE", path, body }, signal);
    if (deleted.kind === "ok") return { kind: "done" };
    if (deleted.status === 404) return { kind: "already" };
    return deleted.status === 409 && UID_MISMATCH.test(deleted.message) ? { kind: "already" } : failed(deleted);
  }

  async #create(creation: Creation, signal: AbortSignal): Promise<KubeResult> {
    const path = collectionOf({ ...creation, apiVersion: versionOf(creation.manifest) });
    const request: KubeRequest = { method: "POST", path, body: creation.manifest };
    const created = await this.#write(request, signal);
    if (created.kind === "ok" || created.status !== 404 || !this.#options.createNamespaces) return created;
    const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: creation.namespace } };
    const made = await this.#write({ method: "POST", path: "/api/v1/namespaces", body: namespace }, signal);
    return made.kind === "ok" || made.reason === "AlreadyExists" ? this.#write(request, signal) : made;
  }

  #read(creation: Creation, signal: AbortSignal): Promise<KubeResult> {
    return this.#options.client.request({ method: "GET", path: pathOf(creation) }, signal);
  }

  #write(request: KubeRequest, signal: AbortSignal): Promise<KubeResult> {
    const { writes, client } = this.#options;
    return writes.run(request.method, () => client.request(request, signal));
  }
}

/** How often an object that others change meanwhile is read again. A pod that is starting changes all the time. */
const ADOPTIONS_MAX = 5;
const DONE: ActOutcome = { kind: "done" };
const ALREADY: ActOutcome = { kind: "already" };
/** The message of API servers about a uid precondition that does not hold. */
const UID_MISMATCH = /uid in (the )?precondition/i;

function nameOf(manifest: JsonObject): string {
  return stringAt(objectAt(manifest, "metadata"), "name") ?? "";
}

function pathOf({ namespace, resource, manifest }: Creation): string {
  return `${collectionOf({ namespace, resource, apiVersion: versionOf(manifest) })}/${nameOf(manifest)}`;
}

function versionOf(manifest: JsonObject): string {
  return stringAt(manifest, "apiVersion") ?? "v1";
}

function collectionOf(of: { readonly namespace: string; readonly resource: string; readonly apiVersion?: string }) {
  const { namespace, resource, apiVersion = "v1" } = of;
  return `${apiVersion === "v1" ? "/api/v1" : `/apis/${apiVersion}`}/namespaces/${namespace}/${resource}`;
}

/** A merge patch keeps members that it does not name, so the members that a spec may lose are set to null. */
function replacing(spec: JsonObject): JsonObject {
  return { priorityClassName: null, scheduleTimeoutSeconds: null, queue: null, ...spec };
}

function ownerReference(name: string, uid: string): JsonObject {
  return { apiVersion: "v1", kind: "ConfigMap", name, uid, controller: true, blockOwnerDeletion: true };
}

function withOwners(manifest: JsonObject, ownerReferences: readonly JsonObject[]): JsonObject {
  return { ...manifest, metadata: { ...objectAt(manifest, "metadata"), ownerReferences } };
}

function failed(failure: KubeFailure): ActOutcome {
  const { reason, message, retryAfterMs } = failure;
  return { kind: "failed", reason, message, retryAfterMs };
}

function successor(path: string): ActOutcome {
  return { kind: "failed", reason: "NotFound", message: `${path} is another object by now: its uid has changed` };
}

function controlled(path: string): ActOutcome {
  return { kind: "failed", reason: "Invalid", message: `${path} has another controller by now, or is being deleted` };
}

function taken(creation: Creation, why: string): ActOutcome {
  const message = `${creation.resource} "${nameOf(creation.manifest)}" already exists and ${why}`;
  return { kind: "failed", reason: "AlreadyExists", message };
}
