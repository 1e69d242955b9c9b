import { gunzipSync } from 'node:zlib'
import { findAll, findOne, MISSING, type ParsedPath, parsePath } from '#path'
import { ExtractionFault } from './fault.ts'
import type { CompiledRead } from './json-path.ts'
import { isFields, type Scrubber } from './scrub.ts'

/** Of a release, unpacked, bytes: what is larger is a trap. */
const MAX_RELEASE = 32 * 2 ** 20
/** Layers around the JSON: base64 of the Secret, base64 of Helm, gzip. */
const MAX_LAYERS = 4

type Fields = Readonly<Record<string, unknown>>

/** Names of their own; other paths lead into the release as Helm stores it. */
const FIELDS: Readonly<Record<string, string>> = {
  releaseName: 'name',
  namespace: 'namespace',
  revision: 'version',
  status: 'info.status',
  lastDeployed: 'info.last_deployed',
  chartName: 'chart.metadata.name',
  chartVersion: 'chart.metadata.version',
  appVersion: 'chart.metadata.appVersion',
}
/** Rendered manifests and whatever else is made of the values, secret ones as well. */
const HIDDEN = ['manifest', 'hooks'] as const
const HIDDEN_OF_CHART = ['templates', 'files', 'values', 'raw', 'schema'] as const
const HIDDEN_OF_INFO = ['notes', 'resources'] as const

export const HELM_PREFIX = 'helm:release.'

/**
 * Compiles `helm:release.<field>`. What a release may not show is taken out of it before the path is walked.
 * @param showsConfig the values that users gave are shown
 */
export function compileHelmPath(text: string, scrubber: Scrubber, showsConfig: boolean): CompiledRead {
  const field = text.slice(HELM_PREFIX.length)
  const { path, fault } = parsePath(Object.hasOwn(FIELDS, field) ? (FIELDS[field] ?? field) : field)
  if (!path) return { fault: fault.message }
  if (path.segments.length === 0)
    return { fault: 'a whole release is not given: write a field, such as helm:release.chartVersion' }
  const refused = refusedBy(path, showsConfig)
  if (refused !== undefined) return { fault: refused }
  const read = (object: unknown) => {
    const release = shown(releaseOf(object), showsConfig)
    if (showsConfig) scrubber.show(release.config)
    if (!path.isSingle) return several(release, path, scrubber)
    const found = findOne(release, path.segments, scrubber.view)
    return found === MISSING ? undefined : found
  }
  return { read, keys: ['data', 'release'] }
}

function several(release: Fields, { segments }: ParsedPath, scrubber: Scrubber): unknown {
  const { values } = findAll(release, segments, scrubber.view)
  return values.length > 1 ? values : values[0]
}

function refusedBy({ segments }: ParsedPath, showsConfig: boolean): string | undefined {
  const [first, second] = segments.map((segment) => (segment.kind === 'key' ? segment.key : ''))
  if (HIDDEN.some((key) => key === first)) return `${first} of a release holds rendered secrets and is never given`
  if (first === 'chart' && HIDDEN_OF_CHART.some((key) => key === second))
    return `chart.${second} of a release is never given`
  if (first === 'info' && HIDDEN_OF_INFO.some((key) => key === second))
    return `info.${second} of a release may hold rendered secrets and is never given`
  if (first === 'config' && !showsConfig)
    return 'the values of a release may be secret: annotate the profile with kollect.dev/allow-secret-extraction: "true" if they may leave the cluster'
  return undefined
}

function shown(release: Fields, showsConfig: boolean): Fields {
  const { config, ...rest } = without(release, HIDDEN)
  const chart = isFields(rest.chart) ? { chart: without(rest.chart, HIDDEN_OF_CHART) } : {}
  const info = isFields(rest.info) ? { info: without(rest.info, HIDDEN_OF_INFO) } : {}
  return { ...rest, ...chart, ...info, ...(showsConfig && { config }) }
}

const without = (map: Fields, keys: readonly string[]): Fields =>
  Object.fromEntries(Object.entries(map).filter(([key]) => !keys.includes(key)))

/** Releases that were unpacked, for further attributes of the same object. */
const unpacked = new WeakMap<object, Fields>()

/** @throws ExtractionFault: the sentence says which layer cannot be read */
function releaseOf(object: unknown): Fields {
  const data = isFields(object) ? object.data : undefined
  const packed = isFields(data) ? data.release : undefined
  if (!isFields(data) || typeof packed !== 'string')
    throw new ExtractionFault('it is no Helm release: it has no data.release')
  const known = unpacked.get(data)
  if (known) return known
  const release = unpack(Buffer.from(packed, 'utf8'))
  unpacked.set(data, release)
  return release
}

function unpack(packed: Buffer): Fields {
  let bytes = packed
  for (let layer = 0; layer <= MAX_LAYERS; layer++) {
    if (bytes[0] === 0x1f && bytes[1] === 0x8b) bytes = gunzipped(bytes)
    else if (bytes[0] === 0x7b) return parsed(bytes)
    else bytes = Buffer.from(bytes.toString('latin1'), 'base64')
  }
  throw new ExtractionFault('the Helm release is neither JSON nor packed as Helm packs it')
}

function gunzipped(bytes: Buffer): Buffer {
  try {
    return gunzipSync(bytes, { maxOutputLength: MAX_RELEASE })
  } catch (error) {
    const isTooLarge = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
    throw new ExtractionFault(
      isTooLarge
        ? `the Helm release is larger than ${MAX_RELEASE / 2 ** 20} MiB when unpacked`
        : 'the Helm release is broken: it cannot be unpacked',
    )
  }
}

function parsed(bytes: Buffer): Fields {
  try {
    const release: unknown = JSON.parse(bytes.toString('utf8'))
    if (isFields(release)) return release
  } catch {
    // The parser's message shows a piece of the text.
  }
  throw new ExtractionFault('the Helm release is broken: it is no JSON')
}
