/** Serves roles and bindings, and tells callers what they may do. */
import type { AccessDeletion, AccessNote, AccessRefusal, BindingRecord } from "../../core/access/binding.ts";
import { scopeNotes } from "../../core/access/check-access.ts";
import { isPermission } from "../../core/access/permissions.ts";
import type {
  AccessService,
  CheckAccessRequest,
  CreateBindingRequest,
  CreateRoleRequest,
} from "../../gen/gangway/v1/access_service_pb.ts";
import type { AccessAdmin } from "../ports.ts";
import { existingRecord, noRoomFor } from "../rpc/admin-outcome.ts";
import type { CallContext } from "../rpc/call.ts";
import type { CallAccess } from "../rpc/call-access.ts";
import type { ServiceHandlers } from "../rpc/handler.ts";
import { pageByName } from "../rpc/name-pages.ts";
import { alreadyExists, failedPrecondition, invalidFields, notFound, staleVersion } from "../rpc/rpc-error.ts";
import { sentBinding, sentScope, toProtoBinding, toProtoRole } from "./convert-access.ts";

type Handlers = Omit<
  ServiceHandlers<typeof AccessService>,
  "whoAmI" | "createRobotToken" | "listRobotTokens" | "revokeRobotToken"
>;

export function rolesAndBindings(admin: AccessAdmin): Handlers {
  return {
    checkAccess: async (request, context) => checkAccess(request, context),
    createRole: (request, context) => createRole(admin, request, context),
    getRole: async ({ name }) => ({
      role: toProtoRole(existingRecord((await admin.read()).roles.get(name) ?? null, roleRef(name))),
    }),
    listRoles: async (request) => {
      const { items, nextPageToken } = pageByName("roles", [...(await admin.read()).roles.values()], request);
      return { roles: items.map(toProtoRole), nextPageToken };
    },
    deleteRole: async ({ name, resourceVersion }, { identity, access }) => {
      const outcome = await admin.deleteRole({ name, version: Number(resourceVersion) }, identity);
      deleted(await withoutHiddenBinding(admin, outcome, access), roleRef(name), access);
      return {};
    },
    createBinding: (request, context) => createBinding(admin, request, context),
    getBinding: async ({ name }, context) => ({ binding: toProtoBinding(await seen(admin, name, context)) }),
    listBindings: async (request, { access }) => {
      const bindings = [...(await admin.read()).bindings.values()];
      const seenOnes = bindings.filter(({ scope }) => access.may("access.get", scope));
      const { items, nextPageToken } = pageByName("bindings", seenOnes, request);
      return { bindings: items.map(toProtoBinding), nextPageToken };
    },
    deleteBinding: async ({ name, resourceVersion }, context) => {
      const { scope } = await seen(admin, name, context);
      context.access.demand("access.bind", scope);
      const version = { name, version: Number(resourceVersion) };
      deleted(await admin.deleteBinding(version, context.identity), bindingRef(name), context.access);
      return {};
    },
  };
}

function checkAccess({ permission, scope }: CheckAccessRequest, { access }: CallContext) {
  const at = sentScope(scope);
  const notes = inField("", scopeNotes(at));
  if (!isPermission(permission)) {
    throw invalidFields([{ field: "permission", message: `${permission} is not a permission` }, ...notes]);
  }
  if (notes.length > 0) throw invalidFields(notes);
  return { allowed: access.holds(permission, at) };
}

async function createRole(admin: AccessAdmin, { role }: CreateRoleRequest, { identity, access }: CallContext) {
  const { name = "", permissions = [] } = role ?? {};
  const outcome = await admin.createRole({ name, permissions }, identity);
  switch (outcome.kind) {
    case "done":
      return { role: toProtoRole(outcome.record) };
    case "exists":
      throw alreadyExists("ROLE_EXISTS", `role ${name} exists`);
    case "full":
      throw noRoomFor(roleRef(name), outcome.max);
    default:
      throw refusedChange(outcome, { ...roleRef(name), path: "role." }, access);
  }
}

async function createBinding(admin: AccessAdmin, { binding }: CreateBindingRequest, context: CallContext) {
  const sent = sentBinding(binding);
  if (sent === null) throw invalidFields([{ field: "binding.to", message: "must have a subject or a group" }]);
  const outcome = await admin.createBinding(sent, context.identity);
  const { name } = sent;
  const { access } = context;
  switch (outcome.kind) {
    case "done":
      return { binding: toProtoBinding(outcome.record) };
    case "exists":
      throw alreadyExists("BINDING_EXISTS", `binding ${name} exists`);
    case "full":
      throw noRoomFor(bindingRef(name), outcome.max);
    case "unknownRole":
      throw invalidFields([{ field: "binding.role", message: `role ${sent.role} does not exist` }]);
    default:
      throw refusedChange(outcome, { ...bindingRef(name), path: "binding." }, access);
  }
}

/** The binding, if the caller may see it. Throws NOT_FOUND otherwise. */
async function seen(admin: AccessAdmin, name: string, { access }: CallContext): Promise<BindingRecord> {
  const found = (await admin.read()).bindings.get(name);
  return existingRecord(found !== undefined && access.may("access.get", found.scope) ? found : null, bindingRef(name));
}

/** The same outcome, unless it names a binding that the caller may not see. */
async function withoutHiddenBinding<T extends AccessDeletion | AccessRefusal>(
  admin: AccessAdmin,
  outcome: T,
  access: CallAccess,
): Promise<T> {
  if (outcome.kind !== "inUse") return outcome;
  const user = (await admin.read()).bindings.get(outcome.by.replace(/^binding /, ""));
  return user !== undefined && access.may("access.get", user.scope) ? outcome : { ...outcome, by: "a binding" };
}

function deleted(
  outcome: AccessDeletion | AccessRefusal,
  of: { readonly type: string; readonly name: string },
  access: CallAccess,
): void {
  const subject = `${of.type} ${of.name}`;
  switch (outcome.kind) {
    case "done":
      return;
    case "notFound":
      throw notFound(of);
    case "stale":
      throw staleVersion(subject);
    case "inUse":
      throw failedPrecondition({ type: "ROLE_IN_USE", subject, description: `is in use by ${outcome.by}` });
    default:
      throw refusedChange(outcome, { ...of, path: "" }, access);
  }
}

function refusedChange(
  refusal: AccessRefusal,
  { type, name, path }: { readonly type: string; readonly name: string; readonly path: string },
  access: CallAccess,
) {
  const subject = `${type} ${name}`;
  switch (refusal.kind) {
    case "invalid":
      return invalidFields(inField(path, refusal.notes));
    case "beyond":
      return access.beyond(refusal);
    case "builtIn":
      return failedPrecondition({ type: "ROLE_BUILT_IN", subject, description: "is built in, and cannot be deleted" });
    case "inFile":
      return failedPrecondition({
        type: "ACCESS_FILE",
        subject,
        description: "is in GANGWAY_ACCESS_FILE: change it there",
      });
    case "onlyFile": {
      const description = "cannot be changed by calls: GANGWAY_ACCESS_FILE alone gives roles and bindings";
      return failedPrecondition({ type: "ACCESS_FILE", subject, description });
    }
  }
}

function inField(path: string, notes: readonly AccessNote[]): readonly AccessNote[] {
  return notes.map(({ field, message }) => ({ field: path + field, message }));
}

function roleRef(name: string) {
  return { type: "role", name };
}

function bindingRef(name: string) {
  return { type: "binding", name };
}
