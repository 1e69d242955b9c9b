import type { Fault } from '../../kind.ts'
import type { Endpoint } from './endpoint.ts'
import { timeFaults } from './inventory.ts'
import { faultIf, isRecord, type Json, recordOf, shown, textOf } from './json.ts'
import type { KollectKnown } from './known.ts'
import { nameFaults } from './names.ts'

/** What a sink of one type takes. */
export interface SinkType {
  /** block of this type; it must be there where `needsBlock` says so */
  readonly block?: string
  readonly needsBlock?: boolean
  /** blocks beside it that count as well */
  readonly alsoBlocks?: readonly string[]
  readonly formats: readonly string[]
  /** keys of `options`, and why a value cannot be used */
  readonly options?: Readonly<Record<string, (value: string) => string | undefined>>
  readonly takesPathTemplate?: boolean
  readonly takesLayout?: boolean
}

/** A sink that is being judged. */
export interface SinkSubject {
  readonly spec: Json
  readonly metadata: Json
  readonly known: KollectKnown
  readonly type: string
}

const IDENTITY = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/
const SECRET_WORDS = /passwd|password|secret|token|api_?key|access_?key|private_?key|credential/i
const CERTIFICATE = '-----BEGIN CERTIFICATE-----'

/** What was accepted by Kollect and had no effect there: refused, unless its semantics are asked for. */
export const withoutEffect = (known: KollectKnown, path: string, isThere: boolean, why: string): Fault[] =>
  faultIf(path, isThere && known.semantics === 'strict' && why)

/** What sinks of every type obey. `blocks` are all blocks that are about a type. */
export function sinkFaults(subject: SinkSubject, type: SinkType, blocks: readonly string[]): Fault[] {
  const { spec, known } = subject
  return [
    ...blockFaults(subject, type, blocks),
    ...clusterFaults(spec.cluster),
    ...secretFaults(subject, 'spec.secretRef', spec.secretRef),
    ...tlsFaults(subject),
    ...timeFaults('spec', spec, known),
    ...serializationFaults(subject, type),
    ...faultIf(
      'spec.layout',
      !type.takesLayout &&
        isRecord(spec.layout) &&
        `has no place in a sink of type ${subject.type}: only git has files. Leave it out`,
    ),
    ...withoutEffect(
      known,
      'spec.pathTemplate',
      !type.takesPathTemplate && spec.pathTemplate !== undefined,
      `has no place in a sink of type ${subject.type}, which has no paths: leave it out`,
    ),
    ...faultIf(
      'spec.provisioning.naming',
      recordOf(recordOf(spec.provisioning).naming).template !== undefined &&
        'is not built: write the name of the table, stream, topic or path itself',
    ),
    ...optionFaults(subject, type),
  ]
}

function blockFaults({ spec, type: name }: SinkSubject, type: SinkType, blocks: readonly string[]): Fault[] {
  const { block, needsBlock = false, alsoBlocks = [] } = type
  const mayHave = [...(block ? [block] : []), ...alsoBlocks]
  return [
    ...faultIf(
      `spec.${block}`,
      needsBlock && block !== undefined && !isRecord(spec[block]) && `is missing: a sink of type ${name} needs it`,
    ),
    ...blocks
      .filter((one) => spec[one] !== undefined && !mayHave.includes(one))
      .map((one) => ({
        path: `spec.${one}`,
        message: `is of another type than ${name}: leave it out, or change the type`,
      })),
  ]
}

function clusterFaults(value: unknown): Fault[] {
  const cluster = textOf(value)
  if (cluster === undefined) return []
  if (cluster.trim() === '')
    return [
      { path: 'spec.cluster', message: 'is empty: give this cluster a name, or leave it out for that of the agent' },
    ]
  const fits = cluster.length <= 63 && IDENTITY.test(cluster) && !cluster.includes('..')
  return faultIf(
    'spec.cluster',
    !fits && `is ${shown(cluster)}: small letters, digits, "-" and single dots, at most 63, such as west or eu.west-1`,
  )
}

/** A Secret: its name, and that it is of the sink's own namespace. */
export function secretFaults({ metadata, known }: SinkSubject, path: string, value: unknown): Fault[] {
  const { name, namespace } = recordOf(value)
  const own = textOf(metadata.namespace) ?? known.namespace
  const given = textOf(namespace)
  const isForeign = given !== undefined && given !== '' && own !== undefined && given !== own
  return [
    ...nameFaults(`${path}.name`, name),
    ...faultIf(
      `${path}.namespace`,
      isForeign &&
        known.semantics === 'strict' &&
        `is ${shown(given)}: Secrets are read from the sink's own namespace ${shown(own)} alone. Copy the Secret there and leave this out, or set KOLLECT_SEMANTICS=original while you migrate`,
    ),
  ]
}

function tlsFaults(subject: SinkSubject): Fault[] {
  const { caBundle, caSecretRef } = recordOf(subject.spec.tls)
  return [
    ...faultIf(
      'spec.tls.caBundle',
      caBundle !== undefined && caSecretRef !== undefined && 'stands beside caSecretRef: give one of the two',
    ),
    ...faultIf('spec.tls.caBundle', typeof caBundle === 'string' && bundleProblem(caBundle)),
    ...secretFaults(subject, 'spec.tls.caSecretRef', caSecretRef),
  ]
}

function bundleProblem(base64: string): string | undefined {
  let text: string | undefined
  try {
    text = atob(base64.replace(/\s/g, ''))
  } catch {
    text = undefined
  }
  if (text?.includes(CERTIFICATE)) return undefined
  return `is no ${text === undefined ? 'base64' : 'PEM'}: give the base64 of a file that holds "${CERTIFICATE}"`
}

const formatNextStep: Readonly<Record<string, string>> = {
  parquet: 'is not built',
  csv: 'is not built',
}

function serializationFaults({ spec, type: name }: SinkSubject, { formats }: SinkType): Fault[] {
  const { format, compression } = recordOf(spec.serialization)
  const word = textOf(format)
  const why =
    word === undefined || formats.includes(word)
      ? false
      : (formatNextStep[word] ?? `has no place in a sink of type ${name}`)
  return [
    ...faultIf(
      'spec.serialization.format',
      why && `is ${shown(word ?? '')}, which ${why}: take ${formats.join(' or ')}`,
    ),
    ...faultIf(
      'spec.serialization.compression',
      typeof compression === 'string' &&
        compression !== 'none' &&
        `is ${shown(compression)}, which is not built: leave it out, or write none`,
    ),
  ]
}

function optionFaults({ spec, known, type: name }: SinkSubject, { options = {} }: SinkType): Fault[] {
  return Object.entries(recordOf(spec.options)).flatMap(([key, value]) => {
    const path = `spec.options.${key}`
    if (SECRET_WORDS.test(key))
      return [
        {
          path,
          message:
            'looks like a credential, which anybody who reads sinks would see: put it into the Secret of secretRef',
        },
      ]
    const check = Object.hasOwn(options, key) ? options[key] : undefined
    const names = Object.keys(options)
    if (!check)
      return withoutEffect(
        known,
        path,
        true,
        `has no effect in a sink of type ${name}: ${names.length > 0 ? `known is ${names.join(', ')}` : 'leave it out'}`,
      )
    return faultIf(path, typeof value === 'string' && check(value))
  })
}

/** Where a sink is: needed, of the right form, without credentials, and nowhere that nobody may send to. */
export function endpointFaults(
  { known }: SinkSubject,
  path: string,
  value: unknown,
  parse: (text: string) => Endpoint,
): Fault[] {
  const text = textOf(value)
  if (text === undefined) return []
  if (text.trim() === '') return [{ path, message: 'is empty: say where the sink is' }]
  const endpoint = parse(text.trim())
  if ('problem' in endpoint) return [{ path, message: endpoint.problem }]
  const refused = endpoint.hosts.map((host) => known.hostProblem?.(host)).find((problem) => problem !== undefined)
  return [
    ...withoutEffect(
      known,
      path,
      endpoint.hasPassword === true,
      'holds credentials, which anybody who reads sinks would see: put them into the Secret of secretRef',
    ),
    ...faultIf(
      path,
      endpoint.scheme === 'file' && !known.allowFiles && 'is a file of the machine the agent runs on: use https or ssh',
    ),
    ...faultIf(path, refused),
  ]
}
