/** The value of a key in a map, which is made and kept if there is none yet. */
export function getOrCreate<K, V>(map: Kept<K, V>, key: K, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}

type Kept<K, V> = {
  get(key: K): V | undefined;
  set(key: K, value: V): unknown;
};
