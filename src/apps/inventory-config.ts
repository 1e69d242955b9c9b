import { compileProfile } from '#extract'
import { ALLOW_SECRET_EXTRACTION, DEFAULT_MAX_EXPORT_BYTES, type KollectKnown, type KollectSemantics } from '#kinds'
import { sinkHostProblem } from '#outbound'
import type { ConfigReader } from '#runtime'

/** By what objects of inventory are judged, whoever writes them. */
export function inventoryKnown(read: ConfigReader): KollectKnown {
  const semantics = read.text('KOLLECT_SEMANTICS', {
    default: 'strict',
    oneOf: ['strict', 'original'],
    meaning:
      'original takes objects of inventory (kollect.dev) as Kollect took them: Secrets of other namespaces, forced pushes, fields without effect; for the time of a migration',
  }) as KollectSemantics
  const allowLoopback = read.flag('SINK_ALLOW_LOOPBACK', {
    default: false,
    meaning: 'sinks of inventory may be on the machine itself, and in files of it (file://)',
  })
  const allowPrivate = read.flag('SINK_ALLOW_PRIVATE', {
    default: false,
    meaning: 'sinks of inventory may be at addresses of private networks, as those in the same cluster are',
  })
  return {
    semantics,
    maxExportBytes: DEFAULT_MAX_EXPORT_BYTES,
    allowFiles: allowLoopback,
    hostProblem: (host) => sinkHostProblem(host, { allowLoopback, allowPrivate }),
    pathProblem,
    predicateProblem: (expression) => pathProblem(`cel:${expression}`),
  }
}

/** A profile of any kind that may read all: what it may read is judged beside this. */
const ANY = { kind: { version: 'v1', kind: 'Any' }, metadata: { annotations: { [ALLOW_SECRET_EXTRACTION]: 'true' } } }

function pathProblem(path: string): string | undefined {
  const spec = { targetGVK: ANY.kind, attributes: [{ name: 'value', path }] }
  const [fault] = compileProfile({ metadata: ANY.metadata, spec }).faults ?? []
  return fault && `cannot be used: ${fault.message}`
}
