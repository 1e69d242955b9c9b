import type { Reader, Writer } from './bytes.ts'
import { WireError } from './errors.ts'

/** Rising places, each as the distance to the one before. */
export function writePlaces(places: readonly number[], to: Writer): void {
  to.varint(places.length)
  let before = -1
  for (const place of places) {
    to.varint(place - before - 1)
    before = place
  }
}

/** @throws WireError where they are more than rows, or beyond them */
export function readPlaces(size: number, from: Reader): number[] {
  const count = from.varint()
  if (count > size || count > from.left) throw new WireError('there are more places than rows')
  const places: number[] = new Array(count)
  let before = -1
  for (let i = 0; i < count; i++) {
    before += from.varint() + 1
    if (before >= size) throw new WireError('a place is beyond the rows')
    places[i] = before
  }
  return places
}
