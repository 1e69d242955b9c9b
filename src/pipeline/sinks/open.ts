import { type DeclarationOf, type Driver, type Sink, type SinkContext, SinkError, type SinkFamily } from './sink.ts'

type Loaders<F extends SinkFamily> = ReadonlyMap<string, () => Promise<Driver<F>>>

const git = async (): Promise<Driver<'snapshot'>> => (await import('./git/index.ts')).openGit
const s3 = async (): Promise<Driver<'snapshot'>> => (await import('./s3/index.ts')).openS3

/** What is loaded when the first sink of its type is opened: an agent without sinks holds no client of any. */
const drivers: { readonly [F in SinkFamily]: Loaders<F> } = {
  database: new Map([['postgres', async () => (await import('./postgres/index.ts')).openPostgres]]),
  snapshot: new Map([
    ['git', git],
    ['gitlab', git],
    ['s3', s3],
  ]),
  event: new Map<string, () => Promise<Driver<'event'>>>([
    ['nats', async () => (await import('./nats/nats.ts')).openNats],
    ['kafka', async () => (await import('./kafka/kafka.ts')).openKafka],
  ]),
}

/**
 * Opens a sink by the type of its spec.
 * @throws SinkError, terminal, for a type that is not built
 */
export async function openSink<F extends SinkFamily>(
  family: F,
  declaration: DeclarationOf[F],
  context: SinkContext,
): Promise<Sink> {
  const ofFamily: Loaders<F> = drivers[family]
  const load = ofFamily.get(declaration.spec.type)
  if (!load) {
    const known = [...ofFamily.keys()].join(', ') || 'none'
    throw new SinkError(
      'terminal',
      `there is no ${family} sink of type ${JSON.stringify(declaration.spec.type)}; the types are: ${known}`,
    )
  }
  return (await load())(declaration, context)
}
