/** Where a stream is: everything up to here was told, of this question and of this process. */
interface Place {
  readonly epoch: string
  readonly sequence: number
  /** of the question */
  readonly mark: string
}

/** The place as the id of an event: opaque to who gets it. */
export const resumeToken = ({ epoch, sequence, mark }: Place): string => `${epoch}.${sequence}.${mark}`

/** @returns the sequence; undefined: it is of another process or question, or none at all, and the whole is told anew */
export function readResumeToken(token: string, { epoch, mark }: Omit<Place, 'sequence'>): number | undefined {
  const [ofEpoch, sequence = '', ofMark, ...rest] = token.split('.')
  if (ofEpoch !== epoch || ofMark !== mark || rest.length > 0 || !/^\d{1,15}$/.test(sequence)) return undefined
  return Number(sequence)
}
