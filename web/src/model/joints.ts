/** Shorter words are never broken. */
const leastLength = 16
const joint = /(?<=[/.:@=,;?&_])(?![/.:@=,;?&_])/
const longWord = new RegExp(`(\\S{${leastLength},})`)

/**
 * A text in pieces between which a line may end: long words, such as addresses, images and labels, behind what joins their parts, and
 * nowhere inside of a part. Together they are the text.
 */
export const piecesOf = (text: string): readonly string[] =>
  text
    .split(longWord)
    .flatMap((part, place) => (place % 2 === 0 ? part : part.split(joint)))
    .filter((piece) => piece !== '')
