/** Takes a millisecond or few. */
const AT_ONCE = 1000

/** Sorts as `toSorted`, in steps, after each of which others may have their turn. */
export function* sortedSteps<T>(
  all: readonly T[],
  compare: (left: T, right: T) => number,
): Generator<undefined, readonly T[]> {
  yield
  if (all.length <= AT_ONCE) return all.toSorted(compare)
  const middle = all.length >> 1
  const left = yield* sortedSteps(all.slice(0, middle), compare)
  const right = yield* sortedSteps(all.slice(middle), compare)
  const merged: T[] = []
  let [l, r] = [0, 0]
  while (l < left.length && r < right.length) {
    if ((l + r) % AT_ONCE === 0) yield
    const [a, b] = [left[l] as T, right[r] as T]
    if (compare(a, b) <= 0) {
      merged.push(a)
      l++
    } else {
      merged.push(b)
      r++
    }
  }
  return merged.concat(left.slice(l), right.slice(r))
}
