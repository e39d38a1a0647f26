/**
 * The texts that Kubernetes allows for names, keys and values. Source: `k8s.io/apimachinery/pkg/util/validation`. Every
 * pattern takes linear time.
 */

/** A kind of text. `problems`: what Kubernetes says about a text that is none; empty for one that is. */
export type Syntax = {
  /** In Gangway's words. */
  readonly allowed: string;
  readonly problems: (text: string) => readonly string[];
  /** True for a text without problems. */
  readonly fits: (text: string) => boolean;
};

const LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`;
const UNDERSCORE_LABEL = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
const UNDERSCORE_SUBDOMAIN = `${UNDERSCORE_LABEL}(\\.${UNDERSCORE_LABEL})*`;
const QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_CHARS_MAX = 63;
const SUBDOMAIN_CHARS_MAX = 253;
const LABEL_PATTERN = new RegExp(`^${LABEL}$`);
const SUBDOMAIN_PATTERN = new RegExp(`^${SUBDOMAIN}$`);
const UNDERSCORE_PATTERN = new RegExp(`^${UNDERSCORE_SUBDOMAIN}$`);
const QUALIFIED_PATTERN = new RegExp(`^${QUALIFIED}$`);
const LABEL_VALUE_PATTERN = new RegExp(`^(${QUALIFIED})?$`);

const tooLong = (max: number) => `must be no more than ${max} characters`;

function withExamples(message: string, examples: readonly string[], pattern: string): string {
  const named = examples.map((one) => `'${one}', `).join(" or ");
  return `${message} (e.g. ${named}regex used for validation is '${pattern}')`;
}

const LABEL_PROBLEM = withExamples(
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', " +
    "and must start and end with an alphanumeric character",
  ["my-name", "123-abc"],
  LABEL,
);
const SUBDOMAIN_PROBLEM = withExamples(
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', " +
    "and must start and end with an alphanumeric character",
  ["example.com"],
  SUBDOMAIN,
);
const UNDERSCORE_PROBLEM = withExamples(
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', " +
    "and must start and end with an alphanumeric character",
  ["example.com"],
  UNDERSCORE_SUBDOMAIN,
);
const QUALIFIED_RULE =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const QUALIFIED_PROBLEM = withExamples(QUALIFIED_RULE, ["MyName", "my.name", "123-abc"], QUALIFIED);
const LABEL_VALUE_PROBLEM = withExamples(
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', " +
    "and must start and end with an alphanumeric character",
  ["MyValue", "my_value", "12345"],
  `(${QUALIFIED})?`,
);

function dnsLabelProblems(text: string): readonly string[] {
  const problems = text.length > LABEL_CHARS_MAX ? [tooLong(LABEL_CHARS_MAX)] : [];
  if (LABEL_PATTERN.test(text)) return problems;
  return [...problems, SUBDOMAIN_PATTERN.test(text) ? "must not contain dots" : LABEL_PROBLEM];
}

function subdomainProblems(text: string): readonly string[] {
  const problems = text.length > SUBDOMAIN_CHARS_MAX ? [tooLong(SUBDOMAIN_CHARS_MAX)] : [];
  return SUBDOMAIN_PATTERN.test(text) ? problems : [...problems, SUBDOMAIN_PROBLEM];
}

function labelKeyProblems(text: string): readonly string[] {
  const slash = text.indexOf("/");
  if (text.includes("/", slash + 1) && slash >= 0) {
    return [
      `a valid label key ${QUALIFIED_PROBLEM} with an optional DNS subdomain prefix and '/' ` +
        "(e.g. 'example.com/MyName')",
    ];
  }
  const prefix = text.slice(0, Math.max(0, slash));
  const name = text.slice(slash + 1);
  const ofPrefix = prefix === "" ? ["must be non-empty"] : subdomainProblems(prefix);
  const ofName = name === "" ? ["must be non-empty"] : name.length > LABEL_CHARS_MAX ? [tooLong(LABEL_CHARS_MAX)] : [];
  return [
    ...(slash < 0 ? [] : ofPrefix.map((problem) => `prefix part ${problem}`)),
    ...[...ofName, ...(QUALIFIED_PATTERN.test(name) ? [] : [QUALIFIED_PROBLEM])].map(
      (problem) => `name part ${problem}`,
    ),
  ];
}

/** A name that leads up or to itself in a folder. */
function upwardProblems(text: string): readonly string[] {
  if (text === "." || text === "..") return [`must not be '${text}'`];
  return text.startsWith("..") ? ["must not start with '..'"] : [];
}

const PORT_NAME_CHARS_MAX = 15;

function portNameProblems(text: string): readonly string[] {
  return [
    ...(text.length > PORT_NAME_CHARS_MAX ? [tooLong(PORT_NAME_CHARS_MAX)] : []),
    ...(/^[-a-z0-9]+$/.test(text) ? [] : ["must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"]),
    ...(/[a-z]/.test(text) ? [] : ["must contain at least one letter (a-z)"]),
    ...(text.includes("--") ? ["must not contain consecutive hyphens"] : []),
    ...(/^-|-$/.test(text) ? ["must not begin or end with a hyphen"] : []),
  ];
}

function configKeyProblems(text: string): readonly string[] {
  const pattern = "[-._a-zA-Z0-9]+";
  const problem = withExamples(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    ["key.name", "KEY_NAME", "key-name"],
    pattern,
  );
  return [
    ...(text.length > SUBDOMAIN_CHARS_MAX ? [tooLong(SUBDOMAIN_CHARS_MAX)] : []),
    ...(/^[-._a-zA-Z0-9]+$/.test(text) ? [] : [problem]),
    ...upwardProblems(text),
  ];
}

function variableProblems(text: string): readonly string[] {
  if (text === "") return ["environment variable name must be non-empty"];
  if (/^[ -<>-~]*$/.test(text)) return [];
  return ["a valid environment variable name must consist only of printable ASCII characters other than '='"];
}

/** An IPv4 address without leading zeros, or an IPv6 address that is not one of IPv4 in disguise. */
function addressProblems(text: string): readonly string[] {
  if (!isAddress(text)) return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"];
  return isMapped(text) ? ["must not be an IPv4-mapped IPv6 address"] : [];
}

const BYTE = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
const IPV4 = new RegExp(`^${BYTE}(\\.${BYTE}){3}$`);

function isAddress(text: string): boolean {
  return IPV4.test(text) || (text.length <= 45 && ipv6Groups(text) !== null);
}

/** The eight groups of an IPv6 address. Null: it is none. */
function ipv6Groups(text: string): readonly number[] | null {
  const halves = text.split("::");
  if (halves.length > 2) return null;
  const [before, after] = halves.map((half) => (half === "" ? [] : half.split(":")));
  const parts = [before, after].map((list = [], at, all) => {
    const last = list.at(-1) ?? "";
    const isEnd = at === 1 || all[1] === undefined;
    return isEnd && IPV4.test(last) ? [...list.slice(0, -1), ...ipv4Groups(last)] : list;
  });
  const [head = [], tail = []] = parts;
  const count = head.length + tail.length;
  const isWhole = halves.length === 1 ? count === 8 : count <= 7;
  if (!isWhole || ![...head, ...tail].every((group) => /^[0-9a-fA-F]{1,4}$/.test(group))) return null;
  const zeros = Array.from({ length: 8 - count }, () => "0");
  return [...head, ...zeros, ...tail].map((group) => Number.parseInt(group, 16));
}

function ipv4Groups(text: string): readonly string[] {
  const [a = 0, b = 0, c = 0, d = 0] = text.split(".").map(Number);
  return [(a * 256 + b).toString(16), (c * 256 + d).toString(16)];
}

function isMapped(text: string): boolean {
  const groups = ipv6Groups(text) ?? [];
  return groups[5] === 0xffff && groups.slice(0, 5).every((group) => group === 0);
}

const SUBDOMAIN_WORDS =
  "must be at most 253 lower-case letters, digits, '-' and '.', with a letter or digit at both ends";

/** A syntax whose texts fit a pattern and a length. Both omitted: its problems decide. */
function syntax(
  allowed: string,
  problems: Syntax["problems"],
  [pattern, charsMax]: readonly [pattern: RegExp, charsMax: number] | readonly [] = [],
): Syntax {
  const fits =
    pattern === undefined || charsMax === undefined
      ? (text: string) => problems(text).length === 0
      : (text: string) => text.length <= charsMax && pattern.test(text);
  return { allowed, problems, fits };
}

/** A key without a domain, which most keys are, or any other. */
function isLabelKey(text: string): boolean {
  return text.includes("/")
    ? labelKeyProblems(text).length === 0
    : text.length <= LABEL_CHARS_MAX && QUALIFIED_PATTERN.test(text);
}

export const SYNTAX = {
  label: syntax(
    "must be at most 63 lower-case letters, digits and dashes, without a dash at either end",
    dnsLabelProblems,
    [LABEL_PATTERN, LABEL_CHARS_MAX],
  ),
  subdomain: syntax(SUBDOMAIN_WORDS, subdomainProblems, [SUBDOMAIN_PATTERN, SUBDOMAIN_CHARS_MAX]),
  /** The name of an object whose end Kubernetes does not check here. */
  subdomainStart: syntax(SUBDOMAIN_WORDS, (text) =>
    subdomainProblems(text.length > 1 && text.endsWith("-") ? `${text.slice(0, -2)}a` : text),
  ),
  searchDomain: syntax("must be a domain: at most 253 lower-case letters, digits, '_', '-' and '.'", (text) => {
    const name = text.endsWith(".") ? text.slice(0, -1) : text;
    if (text === ".") return [];
    const long = name.length > SUBDOMAIN_CHARS_MAX ? [tooLong(SUBDOMAIN_CHARS_MAX)] : [];
    return UNDERSCORE_PATTERN.test(name) ? long : [...long, UNDERSCORE_PROBLEM];
  }),
  labelKey: {
    allowed:
      "must be at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends, " +
      "after an optional domain and '/'",
    problems: labelKeyProblems,
    fits: isLabelKey,
  },
  labelValue: syntax(
    "must be at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends, or empty",
    (text) => [
      ...(text.length > LABEL_CHARS_MAX ? [tooLong(LABEL_CHARS_MAX)] : []),
      ...(LABEL_VALUE_PATTERN.test(text) ? [] : [LABEL_VALUE_PROBLEM]),
    ],
    [LABEL_VALUE_PATTERN, LABEL_CHARS_MAX],
  ),
  portName: syntax(
    "must be at most 15 lower-case letters, digits and single dashes, with at least one letter",
    portNameProblems,
  ),
  configKey: syntax(
    "must be at most 253 letters, digits, '-', '_' and '.', and must not begin with '..'",
    configKeyProblems,
  ),
  variable: syntax("must be printable ASCII characters other than '='", variableProblems),
  address: syntax("must be an IP address such as 10.9.8.7 or 2001:db8::ffff", addressProblems),
  headerName: syntax("must be letters, digits and dashes", (text) => {
    const words = "a valid HTTP header must consist of alphanumeric characters or '-'";
    const pattern = "[-A-Za-z0-9]+";
    return /^[-A-Za-z0-9]+$/.test(text) ? [] : [withExamples(words, ["X-Header-Name"], pattern)];
  }),
  relativePath: syntax("must be a relative path without '..'", relativePathProblems),
  /** A path of a file that a volume makes. */
  filePath: syntax("must be a relative path that does not begin with '..' and has no segment '..'", (text) => [
    ...relativePathProblems(text),
    ...(text.startsWith("..") && !text.startsWith("../") ? ["must not start with '..'"] : []),
  ]),
  noUpwardPath: syntax("must not have a segment '..'", upwardPathProblems),
} as const satisfies Readonly<Record<string, Syntax>>;

function relativePathProblems(text: string): readonly string[] {
  return [...(text.startsWith("/") ? ["must be a relative path"] : []), ...upwardPathProblems(text)];
}

function upwardPathProblems(text: string): readonly string[] {
  return text.split("/").includes("..") ? ["must not contain '..'"] : [];
}
