/** Decides whether a regular expression takes at most linear time, for every text. */

/** The prover runs in this process: no other program, no network. Set before it is loaded. */
process.env["RECHECK_BACKEND"] = "pure";

/** The proofs of today's patterns take seconds on a loaded machine. A pattern that takes longer is too hard to read. */
const PROOF_MS_MAX = 120_000;

/** `why` says the growth of the time, or what the prover cannot decide. */
export type Verdict = { readonly kind: "linear" } | { readonly kind: "refused"; readonly why: string };

/**
 * The prover builds the automaton of the pattern and finds every way to read a text, also from each place where an
 * unanchored search begins anew. So it finds quadratic, cubic and exponential patterns alike. It refuses look-around
 * and references back, which it cannot decide.
 */
export async function judgePattern({ source, flags }: { readonly source: string; readonly flags: string }) {
  const { checkSync } = await import("recheck");
  const found = checkSync(source, flags, { checker: "automaton", timeout: PROOF_MS_MAX });
  switch (found.status) {
    case "safe":
      return { kind: "linear" } as const;
    case "vulnerable": {
      const { type, ...growth } = found.complexity;
      const degree = "degree" in growth ? ` of degree ${growth.degree}` : "";
      return { kind: "refused", why: `takes ${type} time${degree}, for example for ${found.attack.pattern}` } as const;
    }
    case "unknown": {
      const { kind, ...error } = found.error;
      const what = "message" in error ? `: ${error.message}` : "";
      return { kind: "refused", why: `cannot be decided (${kind}${what}); write it more simply` } as const;
    }
  }
}
