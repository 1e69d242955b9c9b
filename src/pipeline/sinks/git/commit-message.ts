import type { KollectSnapshotSinkSpec } from '#kinds'

type GitSpec = NonNullable<KollectSnapshotSinkSpec['git']>

/** What is filled into the message of a commit. */
export interface CommitFacts {
  readonly cluster: string
  /** '' for a cluster inventory */
  readonly namespace: string
  readonly name: string
  readonly generation: number
  readonly itemCount: number
  readonly checksum: string
  readonly exportedAt: string
  /** namespace/name */
  readonly sink: string
  readonly path: string
}

const SUBJECT = 'chore({cluster}/{namespace}/{name}): export {itemCount} items @ {checksumShort}'
const REMOVED = 'chore({cluster}/{namespace}/{name}): remove inventory'

/** Subject, body and one block of trailers, which git recognises as such. Unknown placeholders stay as they are. */
export function commitMessage(spec: GitSpec, facts: CommitFacts, isRemoval = false): string {
  const values = valuesOf(facts)
  const filled = (template: string) =>
    template.replace(
      /\{(\w+)\}/g,
      (text, name: string) => (Object.hasOwn(values, name) ? values[name] : text) as string,
    )
  const subject = oneLine(filled(isRemoval ? REMOVED : (spec.commitMessage ?? SUBJECT)))
  const body = filled(spec.commitBody ?? '').trim()
  const trailers = (spec.commitTrailers ?? []).map((trailer) => oneLine(filled(trailer))).join('\n')
  return `${[subject, body, trailers].filter((part) => part !== '').join('\n\n')}\n`
}

function valuesOf({
  generation,
  itemCount,
  namespace,
  checksum,
  ...facts
}: CommitFacts): Readonly<Record<string, string>> {
  return {
    ...Object.fromEntries(Object.entries(facts).map(([name, value]) => [name, oneLine(value)])),
    namespace: namespace === '' ? 'cluster' : namespace,
    generation: String(generation),
    exportGeneration: String(generation),
    itemCount: String(itemCount),
    checksum,
    checksumShort: checksum.replace(/^\w+:/, '').slice(0, 12),
  }
}

const oneLine = (text: string): string => text.replace(/\s+/g, ' ').trim()
