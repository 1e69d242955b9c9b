import { InventoryApi, type Readable } from '#inventory'
import type { OwnedKubeClient } from '#kube'
import type { Logger, Metrics } from '#runtime'
import { kubernetesAccess } from './inventory-access.ts'
import type { InventoryApiConfig } from './inventory-api-config.ts'

export interface InventoryApiRunOptions {
  readonly config: InventoryApiConfig
  readonly cluster: string
  /** a client of the cluster, of our own: who floods the port with tokens takes no place of the watches */
  readonly connect: () => Promise<OwnedKubeClient>
  readonly readable: () => Readable
  readonly metrics: Metrics
  readonly logger: Logger
}

/** Answers about the inventory of this cluster. Loaded where that is asked for. @throws FleetError where the port is taken */
export async function openInventoryApi(options: InventoryApiRunOptions): Promise<AsyncDisposable> {
  const { config, connect, logger, metrics } = options
  const { auth, host, port } = config
  const kube = auth.kind === 'kubernetes' ? await connect() : undefined
  const access =
    kube && auth.kind === 'kubernetes' ? kubernetesAccess({ kube, cacheTtlMs: auth.cacheTtlMs, metrics }) : undefined
  const api = new InventoryApi({ ...options, address: { host, port }, access })
  const close = async () => {
    await api[Symbol.asyncDispose]()
    access?.[Symbol.dispose]()
    await kube?.[Symbol.asyncDispose]()
  }
  try {
    const taken = await api.start()
    logger.info({ host, port: taken, auth: auth.kind }, 'serves the inventory of this cluster')
  } catch (error) {
    await close()
    throw error
  }
  return { [Symbol.asyncDispose]: close }
}
