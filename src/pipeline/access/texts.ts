/** Whether a text holds a line feed or another control character, which no name does. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
export const hasControlCharacter = (text: string): boolean => /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(text)

/** A path one key deeper, as people write it: `spec.labels.env`, `spec.labels["example.com/env"]`. */
export const memberPath = (path: string, key: string): string =>
  /^[A-Za-z_][\w-]*$/.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`

/** A text within a sentence: quoted, and short. */
export const quoted = (text: string): string => JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text)
