import { servingCertificate } from '#certificates'
import { isKubeError, type KubeClient, type KubeObject, type Resource, whole } from '#kube'
import { FleetError, seconds, systemClock } from '#model'
import type { Logger, Part } from '#runtime'
import { listenWebhooks, type WebhookListener, type WebhookOptions, webhookPath } from '#webhooks'
import type { WebhooksConfig } from './webhooks-config.ts'

/** Of the Secret with the certificate. */
export const WEBHOOKS_SECRET = 'clusterpulse-webhooks'

const LOOK_EVERY_MS = seconds(15)
/** While something is in the way. */
const RETRY_MS = seconds(2)

type Sort = 'Mutating' | 'Validating'

const configurationsOf = (sort: Sort): Resource =>
  whole({
    ...{ group: 'admissionregistration.k8s.io', version: 'v1', kind: `${sort}WebhookConfiguration` },
    plural: `${sort.toLowerCase()}webhookconfigurations`,
    namespaced: false,
  })

export interface ServedWebhooksOptions extends Pick<WebhookOptions, 'rules' | 'converters' | 'onWrite' | 'onRefused'> {
  readonly config: WebhooksConfig
  /** of the API whose server asks */
  readonly kube: () => KubeClient
  /** of the Secret, and of the Service that is asked */
  readonly namespace: string
  /** the objects that make the API server ask, and what applies them, for people */
  readonly configuration: { readonly name: string; readonly sorts: readonly Sort[]; readonly remedy: string }
  /** definitions whose older versions we convert, where they name our Service */
  readonly conversions?: readonly string[]
  readonly logger: Logger
}

/** Webhooks as a part of a process; of several that share a Secret each answers. */
export interface ServedWebhooks {
  readonly part: Part
  /** why the API server gets no answer, or would not believe one; undefined where it does */
  fault(): string | undefined
}

/**
 * Answers an API server of Kubernetes. The certificate is kept in a Secret that all who answer share; the CA that the API server knows it
 * by is written into the configurations, and written again where somebody removed it.
 */
export function servedWebhooks(options: ServedWebhooksOptions): ServedWebhooks {
  const logger = options.logger.child({ part: 'webhooks' })
  const stop = new AbortController()
  let listener: WebhookListener | undefined
  let shown = ''
  let word = ''
  let fault: string | undefined = 'it is starting'
  let running: Promise<void> | undefined
  const untold = new Set(options.conversions)

  const look = async (signal: AbortSignal): Promise<void> => {
    const { config, kube, namespace, configuration, conversions = [], rules, converters, onWrite, onRefused } = options
    const { host, port, serviceName, names } = config
    const {
      ca,
      word: known,
      ...tls
    } = await servingCertificate({
      ...{ hub: kube(), key: { name: WEBHOOKS_SECRET, namespace }, nowMs: systemClock.now(), signal },
      hosts: [`${serviceName}.${namespace}.svc`, ...names],
    })
    word = known
    if (!listener) {
      listener = await listenWebhooks({
        ...{ rules, kube: kube(), tls, word: () => word, host, port, logger },
        ...(converters && { converters }),
        ...(onWrite && { onWrite }),
        ...(onRefused && { onRefused }),
      })
      logger.info({ port: listener.port }, 'the webhooks answer')
    } else if (tls.cert !== shown) listener.renew(tls)
    shown = tls.cert
    for (const sort of configuration.sorts) await publish(kube(), sort, configuration, { ca, word }, signal)
    for (const name of conversions) {
      try {
        await publishConversion(kube(), name, { name: serviceName, namespace }, { ca, word }, signal)
      } catch (error) {
        if (!isKubeError(error, 'forbidden')) throw error
        // As before an upgrade has given the right: writes are answered all the same.
        if (!untold.delete(name)) continue
        logger.warn(
          { definition: name, err: error },
          'its older versions are not converted: apply the component `members`',
        )
      }
    }
  }
  const keep = async (): Promise<void> => {
    const { signal } = stop
    while (!signal.aborted) {
      let found: string | undefined
      try {
        await look(signal)
      } catch (error) {
        if (signal.aborted) return
        found = FleetError.from(error).message
        if (found !== fault) logger.error({ err: error }, 'the API server cannot be answered')
      }
      fault = found
      await systemClock.sleep(found === undefined ? LOOK_EVERY_MS : RETRY_MS, signal)
    }
  }
  return {
    fault: () => fault,
    part: {
      name: 'webhooks',
      start() {
        running = keep()
        return Promise.resolve()
      },
      async stop() {
        stop.abort()
        await running
        await listener?.[Symbol.asyncDispose]()
      },
    },
  }
}

class NoConfigurationError extends FleetError {
  override readonly name = 'NoConfigurationError'
  readonly code = 'no_webhook_configuration'
  readonly retryable = true
}

interface ClientConfig {
  readonly caBundle?: string
  readonly url?: string
  readonly service?: { readonly path?: string }
}

interface Configuration extends KubeObject {
  readonly webhooks?: readonly { readonly name: string; readonly clientConfig: ClientConfig }[]
}

/** What the API server has to know of us: our CA, and each path with the word at its end, instead of one of before. */
function reachedBy(
  { url, service }: ClientConfig,
  path: string,
  { ca, word }: { readonly ca: string; readonly word: string },
) {
  return {
    caBundle: Buffer.from(ca).toString('base64'),
    ...(url !== undefined && { url: `${new URL(url).origin}${path}/${word}` }),
    ...(service && { service: { path: `${path}/${word}` } }),
  }
}

const isTold = (now: ClientConfig, next: ReturnType<typeof reachedBy>): boolean =>
  now.caBundle === next.caBundle && now.url === next.url && now.service?.path === next.service?.path

/** @throws NoConfigurationError, KubeError */
async function publish(
  kube: KubeClient,
  sort: Sort,
  { name, remedy }: ServedWebhooksOptions['configuration'],
  known: { readonly ca: string; readonly word: string },
  signal: AbortSignal,
): Promise<void> {
  const resource = configurationsOf(sort)
  const key = { name }
  const found = (await kube.get(resource, key, signal)) as Configuration | undefined
  if (!found)
    throw new NoConfigurationError(
      `nothing makes the API server ask: there is no ${resource.kind} ${name}; apply ${remedy}`,
    )
  const webhooks = (found.webhooks ?? []).flatMap(({ name, clientConfig }) => {
    const next = reachedBy(clientConfig, webhookPath(sort === 'Mutating' ? 'mutate' : 'validate', name), known)
    return isTold(clientConfig, next) ? [] : [{ name, clientConfig: next }]
  })
  if (webhooks.length === 0) return
  const body = { webhooks }
  await kube.patch(resource, key, body, { kind: 'strategic', signal }).catch(isWrittenByOthers)
}

const definitions = whole({
  ...{ group: 'apiextensions.k8s.io', version: 'v1', kind: 'CustomResourceDefinition' },
  ...{ plural: 'customresourcedefinitions', namespaced: false },
})

interface Definition extends KubeObject {
  readonly spec?: { readonly conversion?: { readonly webhook?: { readonly clientConfig?: OfService } } }
}
type OfService = ClientConfig & { readonly service?: { readonly name?: string; readonly namespace?: string } }

/** A definition that is not there, or whose conversion is somebody else's, such as that of Open Cluster Management, stays as it is. */
async function publishConversion(
  kube: KubeClient,
  name: string,
  service: { readonly name: string; readonly namespace: string },
  known: { readonly ca: string; readonly word: string },
  signal: AbortSignal,
): Promise<void> {
  const found = (await kube.get(definitions, { name }, signal)) as Definition | undefined
  const clientConfig = found?.spec?.conversion?.webhook?.clientConfig
  if (clientConfig?.service?.name !== service.name || clientConfig.service.namespace !== service.namespace) return
  const next = reachedBy(clientConfig, '/convert', known)
  if (isTold(clientConfig, next)) return
  const body = { spec: { conversion: { webhook: { clientConfig: next } } } }
  await kube.patch(definitions, { name }, body, { kind: 'merge', signal }).catch(isWrittenByOthers)
}

/** Looked at again. @throws any other error */
function isWrittenByOthers(error: unknown): void {
  if (!isKubeError(error, 'conflict')) throw error
}
