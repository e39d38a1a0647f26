/** Decides which addresses clusters may have, so that no kubeconfig leads into places that only this machine sees. */
import { BlockList, isIP } from "node:net";
import { addRange, contains } from "../../runtime/address-ranges.ts";

/** The hosts and ranges of `GANGWAY_CLUSTER_HOSTS`. */
export type AllowedHosts = {
  /** As the operator wrote it. */
  readonly text: string;
  /** False: only ranges can allow addresses of this host. */
  readonly allowsName: (host: string) => boolean;
  readonly hasRanges: boolean;
  /** Why a host may not be reached at this address, as the end of a sentence. Null: it may. */
  readonly refusal: (host: string, address: string) => string | null;
};

/** Any host, and API servers of this machine, which people try things out on. */
export const DEFAULT_CLUSTER_HOSTS = "*,127.0.0.0/8,::1/128";

/**
 * Addresses that lead to this machine, to the machine's own cloud account, or to no single machine. A name never allows
 * them, since its owner decides where it leads; only a range does.
 */
const SPECIAL: readonly (readonly [range: string, what: string])[] = [
  ["127.0.0.0/8", "a loopback"],
  ["::1/128", "a loopback"],
  ["169.254.0.0/16", "a link-local"],
  ["fe80::/10", "a link-local"],
  ["fd00:ec2::254/128", "a cloud metadata"],
  ["fd20:ce::254/128", "a cloud metadata"],
  ["100.100.100.200/32", "a cloud metadata"],
  ["192.0.0.192/32", "a cloud metadata"],
  ["168.63.129.16/32", "a cloud metadata"],
  ["0.0.0.0/8", "an unspecified"],
  ["::/128", "an unspecified"],
  ["224.0.0.0/4", "a multicast"],
  ["ff00::/8", "a multicast"],
  ["240.0.0.0/4", "a reserved"],
];

/**
 * Reads a list that commas separate: names, `*.SUFFIX` for all names below one, `*` for all hosts, addresses, and
 * ranges such as 10.0.0.0/8. Throws an error that names the wrong part.
 */
export function parseAllowedHosts(text: string): AllowedHosts {
  const ranges = new BlockList();
  const specialRanges = new BlockList();
  const names: string[] = [];
  let hasRanges = false;
  for (const part of text.split(",").map((one) => one.trim().toLowerCase())) {
    if (part === "") continue;
    if (addRange(isSpecial(part) ? specialRanges : ranges, part)) hasRanges = true;
    else if (/^(\*|(\*\.)?[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?)$/.test(part) && !/^[\d.]+$/.test(part)) names.push(part);
    else throw new Error(`"${part}" is no host, no *.SUFFIX, no address and no range such as 10.0.0.0/8`);
  }
  const allowsName = (host: string) => names.some((name) => matches(name, plainHost(host)));
  return {
    text,
    hasRanges,
    allowsName,
    refusal(host, address) {
      const plain = withoutZone(address);
      const ways = [plain, ...embeddedAddress(plain)];
      if (ways.some((way) => contains(specialRanges, way))) return null;
      const special = SPECIALS.find(({ list }) => ways.some((way) => contains(list, way)));
      if (special !== undefined) {
        const { what, range } = special;
        return `leads to ${what} address: GANGWAY_CLUSTER_HOSTS must list a range inside ${range} to allow it`;
      }
      return allowsName(host) || ways.some((way) => contains(ranges, way))
        ? null
        : `is not allowed by GANGWAY_CLUSTER_HOSTS, which lists ${shown(text)}`;
    },
  };
}

/** A list that is longer says enough by its beginning. */
const TEXT_SHOWN_MAX = 200;

function shown(text: string): string {
  return text.length > TEXT_SHOWN_MAX ? `${text.slice(0, TEXT_SHOWN_MAX)}…` : text;
}

/** True for a range that lies inside a special one: a wide range, such as 0.0.0.0/0, allows no special address. */
function isSpecial(range: string): boolean {
  const [address = "", bits] = range.split("/");
  return SPECIALS.some((one) => {
    return isIP(address) === one.family && contains(one.list, address) && Number(bits ?? 128) >= one.prefix;
  });
}

const SPECIALS = SPECIAL.map(([range, what]) => {
  const list = new BlockList();
  addRange(list, range);
  const [address = "", bits = ""] = range.split("/");
  return { range, what, list, family: isIP(address), prefix: Number(bits) };
});

function matches(name: string, host: string): boolean {
  if (name === "*") return true;
  return name.startsWith("*.") ? host.endsWith(name.slice(1)) : host === name;
}

/** A host as it is compared: without brackets, the dot at its end, and capitals. */
function plainHost(host: string): string {
  return host
    .toLowerCase()
    .replace(/\.$/, "")
    .replace(/^\[|\]$/g, "");
}

function withoutZone(address: string): string {
  return address.split("%")[0] ?? address;
}

/** The IPv4 address that an IPv6 address leads to through a translator: mapped, compatible, NAT64 or 6to4. */
function embeddedAddress(address: string): readonly string[] {
  const groups = isIP(address) === 6 ? groupsOf(address) : null;
  if (groups === null) return [];
  const head = groups.slice(0, 6).join(":");
  const isTranslated = ["0:0:0:0:0:65535", "0:0:0:0:0:0", "0:0:0:0:65535:0", "100:65435:0:0:0:0"].includes(head);
  const [high, low] = isTranslated ? groups.slice(6) : groups[0] === 0x2002 ? groups.slice(1, 3) : [];
  if (high === undefined || low === undefined || (high === 0 && low < 2)) return [];
  return [[high >> 8, high & 255, low >> 8, low & 255].join(".")];
}

/** The eight numbers of an IPv6 address. */
function groupsOf(address: string): readonly number[] {
  const host = URL.parse(`http://[${address}]`)?.hostname.slice(1, -1) ?? "::";
  const [left = [], right] = host.split("::").map((side) => side.split(":").filter((group) => group !== ""));
  const missing = right === undefined ? [] : new Array<string>(8 - left.length - right.length).fill("0");
  return [...left, ...missing, ...(right ?? [])].map((group) => Number.parseInt(group, 16));
}
