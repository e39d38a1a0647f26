/** Serves clients of the simulated API: get, list, create, update, patch and delete, with their preconditions. */
import type { Json, JsonObject } from "../../../runtime/json.ts";
import { arrayAt, canonicalJson, isJsonObject, objectAt, stringAt } from "../../../runtime/json.ts";
import type { SimModel } from "../model.ts";
import type { DeletionOptions } from "../objects/deletion.ts";
import { deleteObject, removeIfReleased } from "../objects/deletion.ts";
import type { KubeObject, ObjectMeta, StoredObject } from "../objects/kube-object.ts";
import { keyOf, kubeTime, without } from "../objects/kube-object.ts";
import type { ResourceKind } from "../objects/resource-kinds.ts";
import { CRD_RESOURCE, RESOURCE_KINDS } from "../objects/resource-kinds.ts";
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
} from "../objects/status-error.ts";
import { withDefaults } from "./defaults.ts";
import { checkShape, validateObject, validatePodUpdate } from "./validate.ts";

/** An object's place in the API. */
type ApiTarget = { readonly kind: ResourceKind; readonly namespace: string | null; readonly name: string };

type Preconditions = { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined };

/** How many suffixes the server tries for a generated name. */
const NAME_ATTEMPTS = 8;

/** Creates an object from a request's body. Throws the StatusError with which kube-apiserver would refuse it. */
export function createObject(
  model: SimModel,
  target: Omit<ApiTarget, "name">,
  body: Json,
  dryRun: boolean,
): KubeObject {
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

/** Creates the objects that every namespace has. */
function fillNamespace(model: SimModel, namespace: string): void {
  const make = (resource: string, name: string, more: JsonObject) => {
    const kind = RESOURCE_KINDS.get(resource);
    if (kind === undefined) return;
    model.store.put(resource, newObject(model, { kind, namespace, name }, more), null);
  };
  make("serviceaccounts", "default", {});
  make("configmaps", "kube-root-ca.crt", { data: { "ca.crt": "" } });
}

/** Gets an object. Throws a 404 if there is none. */
export function getObject(model: SimModel, target: ApiTarget): StoredObject {
  const entry = model.store.get(target.kind.resource, keyOfTarget(target));
  if (entry === undefined) throw notFound(target.kind.resource, target.name);
  return entry;
}

/** Replaces an object, or only its status. The same content keeps the version. */
export function replaceObject(
  model: SimModel,
  target: ApiTarget,
  body: Json,
  options: { part: "main" | "status"; dryRun: boolean },
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
  const next = options.part === "status" ? withStatus(entry.object, sent) : withMain(kind, entry.object, sent);
  if (kind.resource === "pods" && options.part === "main")
    validatePodUpdate(name, entry.object.spec ?? {}, next.spec ?? {});
  validateObject(kind, name, next);
  if (options.dryRun || canonicalJson(next) === canonicalJson(entry.object)) return next;
  const stored = model.store.put(kind.resource, next, entry.run);
  removeIfReleased(model.store, kind.resource, stored);
  return stored;
}

/** Deletes an object if it meets the preconditions; returns its last state. */
export function removeObject(
  model: SimModel,
  target: ApiTarget,
  options: DeletionOptions & { readonly preconditions: Preconditions; readonly dryRun: boolean },
): KubeObject {
  const { object } = getObject(model, target);
  const { kind, name } = target;
  const { uid, resourceVersion } = options.preconditions;
  // Here kube-apiserver uses the kind in its message, not the resource.
  if (uid !== undefined && uid !== object.metadata.uid) {
    const mismatch = `the UID in the precondition (${uid}) does not match the UID in record (${object.metadata.uid})`;
    throw conflict(kind.kind, name, `${mismatch}. The object might have been deleted and then recreated`);
  }
  if (resourceVersion !== undefined && resourceVersion !== object.metadata.resourceVersion) {
    const given = `the ResourceVersion in the precondition (${resourceVersion})`;
    const stored = `the ResourceVersion in record (${object.metadata.resourceVersion})`;
    throw conflict(kind.kind, name, `${given} does not match ${stored}. The object might have been modified`);
  }
  if (kind.resource === "namespaces" && ["default", "kube-system"].includes(name)) {
    throw forbidden("namespaces", name, "this namespace may not be deleted");
  }
  if (options.dryRun) return object;
  if (kind.resource === CRD_RESOURCE) removeInstances(model, name);
  return deleteObject(model.store, kind.resource, object, options);
}

/** Deletes all objects of a kind whose definition is deleted. */
function removeInstances(model: SimModel, resource: string): void {
  for (const object of [...model.store.objects(resource)]) deleteObject(model.store, resource, object, {});
}

function keyOfTarget({ namespace, name }: ApiTarget): string {
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

function checkNamespace({ namespace }: Omit<ApiTarget, "name">, sent: string | undefined): void {
  if (namespace === null || sent === undefined || sent === "" || sent === namespace) return;
  throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
}

function checkNamespaceAccepts(model: SimModel, { kind, namespace }: Omit<ApiTarget, "name">, name: string): void {
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

function nameFor(model: SimModel, { kind, namespace }: Omit<ApiTarget, "name">, metadata: JsonObject): string {
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

function newObject(model: SimModel, { kind, namespace, name }: ApiTarget, body: JsonObject): KubeObject {
  const { labels, annotations, ownerReferences, finalizers, generateName } = objectAt(body, "metadata");
  const metadata = {
    name,
    ...nonEmpty({ generateName }),
    ...(namespace === null ? {} : { namespace }),
    uid: model.store.newUid(),
    resourceVersion: "",
    ...(kind.resource === "pods" || kind.apiVersion !== "v1" ? { generation: 1 } : {}),
    creationTimestamp: kubeTime(model.nowMs),
    ...nonEmpty({ labels, annotations, ownerReferences, finalizers }),
  } as ObjectMeta;
  return { ...body, apiVersion: kind.apiVersion, kind: kind.kind, metadata };
}

/** Drops empty members. */
function nonEmpty(members: Readonly<Record<string, Json | undefined>>): JsonObject {
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
    // Kubernetes checks immutable fields twice: the details repeat the cause, the message does not.
    const cause = CAUSE.invalid("metadata.uid", uid, "field is immutable");
    throw invalid(kind.kind, metadata.name, [cause], [cause, cause]);
  }
  const version = stringAt(sent, "resourceVersion") ?? "";
  if (version !== "" && version !== metadata.resourceVersion) throw modified(kind.resource, metadata.name);
}

function withStatus(before: KubeObject, sent: JsonObject): KubeObject {
  return { ...before, status: objectAt(sent, "status") };
}

/** Applies a client's change to the main part: all but the identity, the system metadata and the status. */
function withMain(kind: ResourceKind, before: KubeObject, sent: JsonObject): KubeObject {
  const system = without(before.metadata, "labels", "annotations", "ownerReferences", "finalizers");
  const { labels, annotations, ownerReferences, ...meta } = objectAt(sent, "metadata");
  // No finalizer can be added to an object that is being deleted.
  const deleting = system.deletionTimestamp !== undefined;
  const previous = before.metadata.finalizers ?? [];
  const finalizers = arrayAt(meta, "finalizers").filter((one) => !deleting || previous.includes(String(one)));
  const metadata = { ...system, ...nonEmpty({ labels, annotations, ownerReferences, finalizers }) } as ObjectMeta;
  const content: KubeObject = { ...without(sent, "status"), apiVersion: kind.apiVersion, kind: kind.kind, metadata };
  const status = kind.hasStatus ? before.status : sent["status"];
  return status === undefined ? content : { ...content, status: objectAt({ status }, "status") };
}

/** Checks that the pod's service account exists. Source: the admission plugin ServiceAccount. */
function checkAccount(model: SimModel, { metadata, spec }: KubeObject): void {
  const account = stringAt(spec, "serviceAccountName") ?? "default";
  if (model.store.get("serviceaccounts", `${metadata.namespace}/${account}`) !== undefined) return;
  const reason = `error looking up service account ${metadata.namespace}/${account}`;
  throw forbidden("pods", metadata.name, `${reason}: serviceaccount "${account}" not found`);
}
