import { NAMESPACE_RULES } from "../core/admin/namespace.ts";
import { PLAIN_POD_CONFIG } from "../core/pods/pod-config.ts";
import { policyInForce } from "../core/pods/policy/pod-policy.ts";
import type { IntakeFacts, IntakePorts, IntakeRules } from "./ports.ts";

/** The rules for the jobs of a namespace. Null facts: those of a namespace without settings of its own. */
export function rulesOf(ports: IntakePorts, facts: IntakeFacts | null): IntakeRules {
  const { kinds, podConfig, namespaceRules = NAMESPACE_RULES } = ports;
  const namespace = facts?.namespace ?? "open";
  const own = namespace === "open" ? null : (namespace.podPolicy ?? null);
  return {
    kinds,
    podConfig: podConfig === undefined ? PLAIN_POD_CONFIG : podConfig(),
    podPolicy: policyInForce(own, namespaceRules.podPolicyDefault),
    isNew: namespace === "open",
    isReserved: namespaceRules.isReserved,
  };
}
