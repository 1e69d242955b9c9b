/** So many letters of the end are kept, or half of a shorter name: a number, or the last part of a generated name. */
const tailLength = 8

/** Names of few letters are never cut. */
const leastLength = 10

/** Where a name is cut when there is no room for it; a tail of '' says that it never is. */
export function cutAt(text: string): readonly [head: string, tail: string] {
  const letters = Array.from(text) // never between the two halves of one letter
  if (letters.length < leastLength) return [text, '']
  const tail = Math.min(tailLength, Math.floor(letters.length / 2))
  return [letters.slice(0, -tail).join(''), letters.slice(-tail).join('')]
}
