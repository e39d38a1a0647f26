import { useQuery } from "@tanstack/react-query";
import { access, bounded } from "./clients.ts";

/** The name of the caller, such as `anonymous`. */
export function useOwnName({ enabled }: { readonly enabled: boolean }) {
  return useQuery({
    queryKey: ["whoami"],
    queryFn: async ({ signal }) => (await access.whoAmI({}, bounded(signal))).identity?.subject ?? "",
    staleTime: Number.POSITIVE_INFINITY,
    enabled,
  });
}
