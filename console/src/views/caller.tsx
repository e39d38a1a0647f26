/** Who is logged in, and the way out. */
import { useQuery } from "@tanstack/react-query";
import { loginMethods, logOut } from "../rpc/login.ts";

export function Caller() {
  const { data } = useQuery({
    queryKey: ["login"],
    queryFn: ({ signal }) => loginMethods(signal),
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (data?.caller === undefined || data.caller === null) return null;
  return (
    <span className="caller">
      <span title={data.caller.subject}>{data.caller.subject}</span>
      <button type="button" onClick={() => void logOut().finally(() => window.location.assign("/"))}>
        Sign out
      </button>
    </span>
  );
}
