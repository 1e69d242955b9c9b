import { ApiError } from '../status.ts'

/** How an answer is written, and in which shape. */
export interface Representation {
  readonly format: 'json' | 'yaml' | 'protobuf'
  readonly shape: 'object' | 'table' | 'partial'
  /** of meta.k8s.io, for a table or partial metadata */
  readonly version: string
}

interface MediaRange {
  readonly type: string
  readonly parameters: Readonly<Record<string, string>>
  readonly quality: number
}

function parseRanges(header: string): MediaRange[] {
  return header
    .split(',')
    .map((part): MediaRange => {
      const [type = '', ...rest] = part.split(';').map((each) => each.trim())
      const parameters = Object.fromEntries(
        rest.map((each) => {
          const at = each.indexOf('=')
          return at < 0 ? [each, ''] : [each.slice(0, at).trim(), each.slice(at + 1).trim()]
        }),
      )
      return { type: type.toLowerCase(), parameters, quality: parameters.q === undefined ? 1 : Number(parameters.q) }
    })
    .filter(({ type, quality }) => type !== '' && quality > 0)
    .sort((a, b) => b.quality - a.quality)
}

const SHAPES: Readonly<Record<string, Representation['shape']>> = {
  Table: 'table',
  PartialObjectMetadata: 'partial',
  PartialObjectMetadataList: 'partial',
}

const FORMATS: Readonly<Record<string, Representation['format']>> = {
  'application/json': 'json',
  'application/*': 'json',
  '*/*': 'json',
  'application/yaml': 'yaml',
  'application/vnd.kubernetes.protobuf': 'protobuf',
}

/**
 * The first thing the client accepts that we can give.
 * @throws ApiError NotAcceptable where there is none.
 */
export function negotiate(
  header: string | undefined,
  can: { readonly protobuf: boolean; readonly shapes: boolean },
): Representation {
  const ranges = header ? parseRanges(header) : []
  if (ranges.length === 0) return { format: 'json', shape: 'object', version: 'v1' }
  for (const { type, parameters } of ranges) {
    // A watch of protobuf asks for its own framing by a parameter; the rest of the type is the same.
    const format = FORMATS[type]
    if (!format) continue
    const { as, g = 'meta.k8s.io', v = 'v1' } = parameters
    if (as === undefined) {
      if (format === 'protobuf' && !can.protobuf) continue
      return { format, shape: 'object', version: 'v1' }
    }
    const shape = SHAPES[as]
    if (!shape || !can.shapes || g !== 'meta.k8s.io' || !['v1', 'v1beta1'].includes(v) || format === 'protobuf')
      continue
    return { format, shape, version: v }
  }
  const known = `application/json, application/yaml${can.protobuf ? ', application/vnd.kubernetes.protobuf' : ''}`
  throw new ApiError('NotAcceptable', `406: Not Acceptable\n\nAvailable representations: ${known}`, {})
}
