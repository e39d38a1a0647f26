import type { Json, JsonObject } from "../../runtime/json.ts";
import { arrayAt, canonicalJson, isJsonObject, objectAt, stringAt } from "../../runtime/json.ts";
import { withDefaults } from "./defaults.ts";
import type { DeletionWishes } from "./deletion.ts";
import { deleteObject, removeIfReleased } from "./deletion.ts";
import type { Entry, KubeObject, ObjectMeta } from "./kube-object.ts";
import { keyOf, kubeTime, without } from "./kube-object.ts";
import type { SimModel } from "./model.ts";
import type { ResourceKind } from "./resource-kinds.ts";
import { CRD_RESOURCE, RESOURCE_KINDS } from "./resource-kinds.ts";
import {
  alreadyExists,
  badRequest,
  CAUSE,
  conflict,
  forbidden,
  invalid,
  modified,
  notFound,
  StatusError,
} from "./status-error.ts";
import { checkShape, validateObject, validatePodUpdate } from "./validate.ts";

/** An object's place in the API. */
export type Target = { readonly kind: ResourceKind; readonly namespace: string | null; readonly name: string };

export type Preconditions = { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined };

/** How often the server tries another suffix for a generated name that is taken. */
const NAME_ATTEMPTS = 8;

/** Creates an object from a request's body. Throws a StatusError for whatever kube-apiserver would refuse. */
export function createObject(model: SimModel, target: Omit<Target, "name">, body: Json, dryRun: boolean): KubeObject {
  const { kind } = target;
  const sent = checkBody(kind, body);
  const metadata = objectAt(sent, "metadata");
  if ((stringAt(metadata, "resourceVersion") ?? "") !== "") {
    throw new StatusError(500, "", "resourceVersion should not be set on objects to be created");
  }
  checkNamespace(target, stringAt(metadata, "namespace"));
  const name = nameFor(model, target, metadata);
  checkNamespaceAccepts(model, target, name);
  const full = withDefaults({ resource: kind.resource, name, nowMs: model.nowMs }, sent);
  const object = newObject(model, { ...target, name }, full);
  if (kind.resource === "pods") checkAccount(model, object);
  validateObject(kind, name, object);
  if (model.store.get(kind.resource, keyOf(object.metadata)) !== undefined) throw alreadyExists(kind.resource, name);
  model.quotas.admit(kind.resource, object);
  if (dryRun) return object;
  const stored = model.store.put(kind.resource, object, null);
  if (kind.resource === "namespaces") fillNamespace(model, name);
  return stored;
}

/** What every namespace holds from the beginning. */
function fillNamespace(model: SimModel, namespace: string): void {
  const make = (resource: string, name: string, more: JsonObject) => {
    const kind = RESOURCE_KINDS.get(resource);
    if (kind === undefined) return;
    model.store.put(resource, newObject(model, { kind, namespace, name }, more), null);
  };
  make("serviceaccounts", "default", {});
  make("configmaps", "kube-root-ca.crt", { data: { "ca.crt": "" } });
}

/** Finds an object; throws a 404 without it. */
export function getObject(model: SimModel, target: Target): Entry {
  const entry = model.store.get(target.kind.resource, keyOfTarget(target));
  if (entry === undefined) throw notFound(target.kind.resource, target.name);
  return entry;
}

/** Replaces an object, or its status alone; the same content changes nothing and keeps the version. */
export function replaceObject(
  model: SimModel,
  target: Target,
  body: Json,
  how: { part: "main" | "status"; dryRun: boolean },
): KubeObject {
  const { kind, name } = target;
  const sent = checkBody(kind, body);
  const metadata = objectAt(sent, "metadata");
  const sentName = stringAt(metadata, "name") ?? "";
  if (sentName !== name) {
    throw badRequest(`the name of the object (${sentName}) does not match the name on the URL (${name})`);
  }
  checkNamespace(target, stringAt(metadata, "namespace"));
  const entry = getObject(model, target);
  checkIdentity(kind, entry.object, metadata);
  const next = how.part === "status" ? withStatus(entry.object, sent) : withMain(kind, entry.object, sent);
  if (kind.resource === "pods" && how.part === "main")
    validatePodUpdate(name, entry.object.spec ?? {}, next.spec ?? {});
  validateObject(kind, name, next);
  if (how.dryRun || canonicalJson(next) === canonicalJson(entry.object)) return next;
  const stored = model.store.put(kind.resource, next, entry.run);
  removeIfReleased(model.store, kind.resource, stored);
  return stored;
}

/** Deletes an object if it is the one that was meant; returns its last or present state. */
export function removeObject(
  model: SimModel,
  target: Target,
  wishes: DeletionWishes & { readonly preconditions: Preconditions; readonly dryRun: boolean },
): KubeObject {
  const { object } = getObject(model, target);
  const { kind, name } = target;
  const { uid, resourceVersion } = wishes.preconditions;
  // The API server names the kind here, not the resource.
  if (uid !== undefined && uid !== object.metadata.uid) {
    const why = `the UID in the precondition (${uid}) does not match the UID in record (${object.metadata.uid}). The object might have been deleted and then recreated`;
    throw conflict(kind.kind, name, why);
  }
  if (resourceVersion !== undefined && resourceVersion !== object.metadata.resourceVersion) {
    const why = `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${object.metadata.resourceVersion}). The object might have been modified`;
    throw conflict(kind.kind, name, why);
  }
  if (kind.resource === "namespaces" && ["default", "kube-system"].includes(name)) {
    throw forbidden("namespaces", name, "this namespace may not be deleted");
  }
  if (wishes.dryRun) return object;
  if (kind.resource === CRD_RESOURCE) removeInstances(model, name);
  return deleteObject(model.store, kind.resource, object, wishes);
}

/** With its definition a kind goes, and everything of that kind. */
function removeInstances(model: SimModel, resource: string): void {
  for (const object of [...model.store.objects(resource)]) deleteObject(model.store, resource, object, {});
}

export function keyOfTarget({ namespace, name }: Target): string {
  return namespace === null ? name : `${namespace}/${name}`;
}

function checkBody(kind: ResourceKind, body: Json): JsonObject {
  if (!isJsonObject(body)) {
    throw badRequest(
      `couldn't get version/kind; json parse error: json: cannot unmarshal into Go value of type struct`,
    );
  }
  const sentKind = stringAt(body, "kind") ?? kind.kind;
  const version = stringAt(body, "apiVersion") ?? kind.apiVersion;
  if (sentKind !== kind.kind || version !== kind.apiVersion) {
    const why = `converting (${version}.${sentKind}) to (core.${kind.kind}): unknown conversion`;
    throw badRequest(`${sentKind} in version "${version}" cannot be handled as a ${kind.kind}: ${why}`);
  }
  checkShape(kind.kind, body);
  return body;
}

function checkNamespace({ namespace }: Omit<Target, "name">, sent: string | undefined): void {
  if (namespace === null || sent === undefined || sent === "" || sent === namespace) return;
  throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
}

function checkNamespaceAccepts(model: SimModel, { kind, namespace }: Omit<Target, "name">, name: string): void {
  if (namespace === null) return;
  const found = model.store.get("namespaces", namespace)?.object;
  if (found === undefined) throw notFound("namespaces", namespace);
  if (found.metadata.deletionTimestamp === undefined) return;
  throw forbidden(
    kind.resource,
    name,
    `unable to create new content in namespace ${namespace} because it is being terminated`,
    [
      {
        reason: "NamespaceTerminating",
        message: `namespace ${namespace} is being terminated`,
        field: "metadata.namespace",
      },
    ],
  );
}

function nameFor(model: SimModel, { kind, namespace }: Omit<Target, "name">, metadata: JsonObject): string {
  const name = stringAt(metadata, "name") ?? "";
  const prefix = stringAt(metadata, "generateName") ?? "";
  if (name !== "" || prefix === "") return name;
  let generated = "";
  for (let attempt = 0; attempt < NAME_ATTEMPTS; attempt += 1) {
    generated = prefix.slice(0, 58) + model.store.nameSuffix();
    if (model.store.get(kind.resource, keyOfTarget({ kind, namespace, name: generated })) === undefined) break;
  }
  return generated;
}

function newObject(model: SimModel, { kind, namespace, name }: Target, body: JsonObject): KubeObject {
  const { labels, annotations, ownerReferences, finalizers, generateName } = objectAt(body, "metadata");
  const metadata = {
    name,
    ...present({ generateName }),
    ...(namespace === null ? {} : { namespace }),
    uid: model.store.newUid(),
    resourceVersion: "",
    ...(kind.resource === "pods" || kind.apiVersion !== "v1" ? { generation: 1 } : {}),
    creationTimestamp: kubeTime(model.nowMs),
    ...present({ labels, annotations, ownerReferences, finalizers }),
  } as ObjectMeta;
  return { ...body, apiVersion: kind.apiVersion, kind: kind.kind, metadata };
}

/** Without the members that say nothing. */
function present(members: Readonly<Record<string, Json | undefined>>): JsonObject {
  const empty = (value: Json | undefined) =>
    value === undefined ||
    value === null ||
    value === "" ||
    (typeof value === "object" && Object.keys(value).length === 0);
  return Object.fromEntries(Object.entries(members).filter(([, value]) => !empty(value)));
}

function checkIdentity(kind: ResourceKind, { metadata }: KubeObject, sent: JsonObject): void {
  const uid = stringAt(sent, "uid") ?? "";
  if (uid !== "" && uid !== metadata.uid) {
    // Kubernetes checks what cannot change twice, and its message says it once.
    const cause = CAUSE.invalid("metadata.uid", uid, "field is immutable");
    throw invalid(kind.kind, metadata.name, [cause], [cause, cause]);
  }
  const version = stringAt(sent, "resourceVersion") ?? "";
  if (version !== "" && version !== metadata.resourceVersion) throw modified(kind.resource, metadata.name);
}

function withStatus(before: KubeObject, sent: JsonObject): KubeObject {
  return { ...before, status: objectAt(sent, "status") };
}

/** What a client may change of an object: all but its identity, its system metadata and its status. */
function withMain(kind: ResourceKind, before: KubeObject, sent: JsonObject): KubeObject {
  const system = without(before.metadata, "labels", "annotations", "ownerReferences", "finalizers");
  const { labels, annotations, ownerReferences, ...meta } = objectAt(sent, "metadata");
  // A finalizer cannot be added any more once the object is being deleted.
  const deleting = system.deletionTimestamp !== undefined;
  const had = before.metadata.finalizers ?? [];
  const finalizers = arrayAt(meta, "finalizers").filter((one) => !deleting || had.includes(String(one)));
  const metadata = { ...system, ...present({ labels, annotations, ownerReferences, finalizers }) } as ObjectMeta;
  const content: KubeObject = { ...without(sent, "status"), apiVersion: kind.apiVersion, kind: kind.kind, metadata };
  const status = kind.hasStatus ? before.status : sent["status"];
  return status === undefined ? content : { ...content, status: objectAt({ status }, "status") };
}

/** A pod runs under an account of its namespace. Source: the admission plugin ServiceAccount. */
function checkAccount(model: SimModel, { metadata, spec }: KubeObject): void {
  const account = stringAt(spec, "serviceAccountName") ?? "default";
  if (model.store.get("serviceaccounts", `${metadata.namespace}/${account}`) !== undefined) return;
  const why = `error looking up service account ${metadata.namespace}/${account}: serviceaccount "${account}" not found`;
  throw forbidden("pods", metadata.name, why);
}
