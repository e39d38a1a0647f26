/** The format in which a quantity was written. Its canonical form keeps the format if that loses nothing. */
type QuantityFormat = "DecimalSI" | "DecimalExponent" | "BinarySI";

/** A Kubernetes quantity as an exact number of billionths of its unit, the smallest amount in Kubernetes. */
type Quantity = { readonly nano: bigint; readonly format: QuantityFormat };

const NANO = 10n ** 9n;
const NANO_OF_MILLI = 10n ** 6n;
/** A quantity with a binary suffix above 2^63 − 1 counts as that number. */
const BINARY_NANO_MAX = (2n ** 63n - 1n) * NANO;
const BINARY_SUFFIXES = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const DECIMAL = { n: -9, u: -6, m: -3, "": 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 };
/** How many billionths one of a suffix is. */
const NANO_OF: ReadonlyMap<string, bigint> = new Map([
  ...BINARY_SUFFIXES.map((suffix, power): [string, bigint] => [suffix, NANO * 1024n ** BigInt(power)]),
  ...Object.entries(DECIMAL).map(([suffix, power]): [string, bigint] => [suffix, 10n ** BigInt(9 + power)]),
]);
/** More digits than any amount needs. The time to read a number grows with the square of its length. */
const CHARS_MAX = 128;
const SYNTAX = /^([+-]?)(\d+(?:\.\d*)?|\.\d+)(?:([KMGTPE]i)|([numkMGTPE]?)|[eE]([+-]?\d{1,2}))$/;

/**
 * Reads a quantity, with or without spaces around it. Null if the text is not one. Rounds up to whole billionths, away
 * from zero, so that a small amount never becomes none. Source: apimachinery `resource.ParseQuantity`.
 */
export function parseQuantity(text: string): Quantity | null {
  const match = text.length > CHARS_MAX ? null : SYNTAX.exec(text.trim());
  if (match === null) return null;
  const [, sign, digits = "", binary, decimal = "", exponent] = match;
  const [whole = "", fraction = ""] = digits.split(".");
  const amount = BigInt(whole + fraction);
  if (exponent !== undefined) {
    const power = 9 + Number(exponent) - fraction.length;
    const up = power < 0 ? ceilDivide(amount, 10n ** BigInt(-power)) : amount * 10n ** BigInt(power);
    return signed(sign, up, "DecimalExponent");
  }
  const nano = amount * (NANO_OF.get(binary ?? decimal) ?? NANO);
  const up = fraction === "" ? nano : ceilDivide(nano, 10n ** BigInt(fraction.length));
  if (binary === undefined) return signed(sign, up, "DecimalSI");
  return signed(sign, up > BINARY_NANO_MAX ? BINARY_NANO_MAX : up, "BinarySI");
}

/** True for a text that `parseQuantity` reads. Reads no number. */
export function isQuantityText(text: string): boolean {
  return text.length <= CHARS_MAX && SYNTAX.test(text.trim());
}

function signed(sign: string | undefined, nano: bigint, format: QuantityFormat): Quantity {
  return { nano: sign === "-" ? -nano : nano, format };
}

/**
 * The canonical text of a quantity, as an API server answers with it: no fraction, the largest suffix that leaves none.
 * Binary suffixes stay for whole amounts of 1024 and more. Source: apimachinery `Quantity.CanonicalizeBytes`.
 */
export function formatQuantity({ nano, format }: Quantity): string {
  if (nano === 0n) return "0";
  const isBinary = format === "BinarySI" && nano % NANO === 0n && absolute(nano) >= 1024n * NANO;
  if (isBinary) return formatBinary(nano / NANO);
  let mantissa = nano;
  let power = -9;
  while (mantissa % 1000n === 0n) {
    mantissa /= 1000n;
    power += 3;
  }
  if (format === "DecimalExponent") return power === 0 ? String(mantissa) : `${mantissa}e${power}`;
  const suffix = Object.entries(DECIMAL).find(([, exponent]) => exponent === power)?.[0];
  // No suffix is above E: larger amounts are written out.
  return suffix === undefined ? `${mantissa * 10n ** BigInt(power - DECIMAL.E)}E` : `${mantissa}${suffix}`;
}

function formatBinary(units: bigint): string {
  let mantissa = units;
  let at = 0;
  while (mantissa % 1024n === 0n && at < BINARY_SUFFIXES.length - 1) {
    mantissa /= 1024n;
    at += 1;
  }
  return `${mantissa}${BINARY_SUFFIXES[at]}`;
}

/**
 * A Kubernetes quantity in thousandths of its unit, rounded up as in every ResourceList. Null if the text is not one.
 */
export function parseMilli(text: string): bigint | null {
  const quantity = parseQuantity(text);
  if (quantity === null) return null;
  const up = ceilDivide(absolute(quantity.nano), NANO_OF_MILLI);
  return quantity.nano < 0n ? -up : up;
}

/** The canonical text of thousandths: 1500 is `1500m`, 2000 is `2`, 3000000 is `3k`. */
export function formatMilli(milli: number | bigint, format: QuantityFormat = "DecimalSI"): string {
  return formatQuantity({ nano: BigInt(milli) * NANO_OF_MILLI, format });
}

function ceilDivide(a: bigint, b: bigint): bigint {
  return (a + b - 1n) / b;
}

function absolute(value: bigint): bigint {
  return value < 0n ? -value : value;
}
