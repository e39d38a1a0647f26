/** A value that is mostly there at once: a promise for it would cost each call more than the value does. */
export type Soon<T> = T | Promise<T>;

/** Applies the function now, or once the value is there. Throws what the function throws, perhaps later. */
export function whenThere<T, U>(value: Soon<T>, apply: (value: T) => Soon<U>): Soon<U> {
  return value instanceof Promise ? value.then(apply) : apply(value);
}
