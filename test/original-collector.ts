/**
 * A collector of the original as its wire is documented, and nothing else: messages of its own, encoded by another
 * library than ours, no hello, no capability, one ack per batch awaited by its id.
 */
import { ChannelCredentials, Client, type ClientDuplexStream, Metadata, type StatusObject } from '@grpc/grpc-js'
import protobuf from 'protobufjs'

const METHOD = '/clusterpulse.collector.v1.CollectorService/Connect'

// Numbers and names of the documented messages, as far as this collector sends or reads them.
const { root } = protobuf.parse(`
  syntax = "proto3";
  message ConnectRequest { oneof payload { MetricsBatch metrics = 1; HealthReport health = 2; RegisterRequest register = 3; } }
  message ConnectResponse { oneof payload { ConfigUpdate config = 1; Ack ack = 2; } }
  message Timestamp { int64 seconds = 1; int32 nanos = 2; }
  message RegisterRequest { string cluster_name = 1; string token = 2; string version = 3; }
  message HealthReport {
    string cluster_name = 1; Timestamp timestamp = 2; int64 uptime_seconds = 3; int32 buffered_batches = 4;
  }
  message ConfigUpdate { repeated bytes metric_sources_json = 1; int32 default_interval_seconds = 2; }
  message Ack { string batch_id = 1; bool success = 2; string error = 3; }
  message MetricsBatch {
    string cluster_name = 1; string batch_id = 2; Timestamp collected_at = 3; ClusterMetrics cluster_metrics = 4;
    repeated NodeMetrics node_metrics = 5; repeated OperatorInfo operators = 7;
    repeated ClusterOperatorInfo cluster_operators = 8; ClusterInfo cluster_info = 9;
  }
  message ClusterMetrics {
    int32 nodes = 1; int32 nodes_ready = 2; int32 namespaces = 4; repeated string namespace_list = 5; int32 pods = 6;
    int32 pods_running = 7; double cpu_capacity = 10; int64 memory_capacity = 14; int32 deployments = 22;
  }
  message NodeMetrics {
    string name = 1; string status = 2; repeated string roles = 3; double cpu_capacity = 10; int64 memory_capacity = 11;
    int64 storage_capacity = 12; int32 pods_capacity = 13; double cpu_allocatable = 14; int64 memory_allocatable = 15;
    int64 storage_allocatable = 16; int32 pods_allocatable = 17; double cpu_requested = 18; int64 memory_requested = 19;
    double cpu_usage_percent = 20; double memory_usage_percent = 21; int32 pods_running = 22; int32 pods_pending = 23;
    int32 pods_failed = 24; int32 pods_succeeded = 25; int32 pods_total = 26; string kernel_version = 30;
    string os_image = 31; string container_runtime = 32; string kubelet_version = 33; string architecture = 34;
    map<string, string> labels = 35; string internal_ip = 36; string hostname = 37;
  }
  message OperatorInfo {
    string name = 1; string display_name = 2; string version = 3; string status = 4; string installed_namespace = 5;
    string install_mode = 6; string provider = 7; bool is_cluster_wide = 8; repeated string install_modes = 9;
    repeated string available_in_namespaces = 10; int32 available_count = 11; map<string, string> subscription = 12;
  }
  message ClusterOperatorInfo {
    string name = 1; string version = 2; bool available = 3; bool progressing = 4; bool degraded = 5; bool upgradeable = 6;
    string message = 7; string reason = 8;
  }
  message ClusterInfo {
    string api_url = 1; string version = 2; string platform = 3; string console_url = 4; string channel = 5;
    string cluster_id = 6;
  }
`)
const Request = root.lookupType('ConnectRequest')
const Response = root.lookupType('ConnectResponse')

interface OriginalAck {
  readonly batchId: string
  readonly success: boolean
  readonly error: string
}

interface Answer {
  readonly ack?: OriginalAck
  readonly config?: object
}

interface OriginalOptions {
  /** host:port */
  readonly address: string
  readonly cluster: string
  readonly token: string
  /** absent: HTTP/2 in the clear */
  readonly tls?: { readonly ca: string; readonly serverName: string }
  /** the registration's own token, where it differs from the one of the call */
  readonly registers?: string
}

/** Registers at once. */
export class OriginalCollector implements AsyncDisposable {
  readonly #cluster: string
  readonly #client: Client
  readonly #call: ClientDuplexStream<Uint8Array, Uint8Array>
  readonly #waiting: (() => void)[] = []
  /** in the order they came */
  readonly acks: OriginalAck[] = []
  readonly configs: object[] = []
  /** bytes that are no message an original knows */
  unknown = 0
  status: StatusObject | undefined

  constructor({ address, cluster, token, tls, registers = token }: OriginalOptions) {
    this.#cluster = cluster
    const credentials = tls
      ? ChannelCredentials.createSsl(Buffer.from(tls.ca), null, null, {
          // As the original verifies where a name is set: the chain, for that name.
          checkServerIdentity: (_, { subjectaltname = '' }) =>
            subjectaltname.includes(`DNS:${tls.serverName}`) ? undefined : new Error(`not ${tls.serverName}`),
        })
      : ChannelCredentials.createInsecure()
    this.#client = new Client(address, credentials, { 'grpc.use_local_subchannel_pool': 1 })
    const metadata = new Metadata()
    metadata.set('authorization', `Bearer ${token}`)
    const asBuffer = (bytes: Uint8Array) => Buffer.from(bytes)
    this.#call = this.#client.makeBidiStreamRequest(METHOD, asBuffer, (bytes) => bytes, metadata)
    this.#call.on('data', (bytes: Uint8Array) => this.#take(Response.decode(bytes) as Answer))
    this.#call.on('error', () => undefined) // told by the status as well
    this.#call.on('status', (status) => {
      this.status = status
      this.#wake()
    })
    this.#send({ register: { clusterName: cluster, token: registers, version: 'v0.9.1' } })
  }

  /** A batch of the given numbers; what is not given is absent. */
  push(batchId: string, batch: object, at = Date.now()): void {
    const collectedAt = { seconds: Math.floor(at / 1000), nanos: (at % 1000) * 1e6 }
    this.#send({ metrics: { clusterName: this.#cluster, batchId, collectedAt, ...batch } })
  }

  health(bufferedBatches: number): void {
    const timestamp = { seconds: Math.floor(Date.now() / 1000), nanos: 0 }
    this.#send({ health: { clusterName: this.#cluster, timestamp, uptimeSeconds: 5, bufferedBatches } })
  }

  /** Resolves when so many acks came; rejects when the stream ends before. */
  async acked(count: number): Promise<readonly OriginalAck[]> {
    while (this.acks.length < count) {
      if (this.status) throw new Error(`the stream ended: ${this.status.code} ${this.status.details}`)
      await this.#changed()
    }
    return this.acks.slice(0, count)
  }

  async ended(): Promise<StatusObject> {
    while (!this.status) await this.#changed()
    return this.status
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#call.cancel()
    this.#client.close()
    return Promise.resolve()
  }

  #send(payload: object): void {
    this.#call.write(Request.encode(Request.fromObject(payload)).finish())
  }

  #take({ ack, config }: Answer): void {
    if (ack) this.acks.push(ack)
    else if (config) this.configs.push(config)
    else this.unknown++
    this.#wake()
  }

  #changed(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}
