const BINARY = { Ki: 2n ** 10n, Mi: 2n ** 20n, Gi: 2n ** 30n, Ti: 2n ** 40n, Pi: 2n ** 50n, Ei: 2n ** 60n };
const DECIMAL = { n: -9, u: -6, m: -3, "": 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 };
const SYNTAX = /^([+-]?)(\d+\.?\d*|\.\d+)(?:([KMGTPE]i)|([numkMGTPE]?)|[eE]([+-]?\d{1,2}))$/;

/**
 * A Kubernetes quantity in thousandths of its unit, rounded up, as Kubernetes rounds requests; null if it is not one.
 * Source: apimachinery `resource.Quantity`.
 */
export function parseMilli(text: string): bigint | null {
  const match = SYNTAX.exec(text);
  if (match === null) return null;
  const [, sign, digits = "", binary, decimal, exponent] = match;
  const [whole = "", fraction = ""] = digits.split(".");
  let numerator = BigInt(whole + fraction) * 1000n;
  let denominator = 10n ** BigInt(fraction.length);
  if (binary !== undefined) {
    numerator *= BINARY[binary as keyof typeof BINARY];
  } else {
    const power = exponent === undefined ? DECIMAL[(decimal ?? "") as keyof typeof DECIMAL] : Number(exponent);
    if (power >= 0) numerator *= 10n ** BigInt(power);
    else denominator *= 10n ** BigInt(-power);
  }
  const up = (numerator + denominator - 1n) / denominator;
  return sign === "-" ? -up : up;
}
