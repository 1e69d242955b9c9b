/**
 * A hub of the original as its wire is documented, and nothing else: messages of its own, encoded by another library than
 * ours. It takes no notice of a hello, says `config` once after a registration if there is anything to say, and acknowledges
 * every batch in order.
 */
import { Server, ServerCredentials, type ServerDuplexStream } from '@grpc/grpc-js'
import protobuf from 'protobufjs'

const { root } = protobuf.parse(`
  syntax = "proto3";
  message ConnectRequest { oneof payload { MetricsBatch metrics = 1; HealthReport health = 2; RegisterRequest register = 3; } }
  message ConnectResponse { oneof payload { ConfigUpdate config = 1; Ack ack = 2; } }
  message RegisterRequest { string cluster_name = 1; string token = 2; string version = 3; }
  message HealthReport { string cluster_name = 1; }
  message ConfigUpdate { repeated bytes metric_sources_json = 1; int32 default_interval_seconds = 2; }
  message Ack { string batch_id = 1; bool success = 2; string error = 3; }
  message CustomCollectedResource {
    string id = 1; string namespace = 2; string name = 3; map<string, string> labels = 4; bytes values_json = 5;
  }
  message CustomResourceBatch {
    string source_id = 1; int32 resource_count = 2; bool truncated = 3; int64 duration_ms = 4;
    repeated CustomCollectedResource resources = 5; map<string, double> aggregation_values = 6;
  }
  message MetricsBatch {
    string cluster_name = 1; string batch_id = 2; repeated CustomResourceBatch custom_resources = 6;
  }
`)
const Request = root.lookupType('ConnectRequest')
const Response = root.lookupType('ConnectResponse')

export interface ReceivedCollection {
  readonly count: number
  /** by id */
  readonly values: Readonly<Record<string, unknown>>
  readonly aggregations: Readonly<Record<string, number>>
}

interface OriginalBatch {
  readonly batchId: string
  readonly customResources?: readonly {
    readonly sourceId: string
    readonly resourceCount: number
    readonly resources?: readonly { readonly id: string; readonly valuesJson: Buffer }[]
    readonly aggregationValues?: Readonly<Record<string, number>>
  }[]
}

export class OriginalHub implements AsyncDisposable {
  readonly #server: Server
  readonly #calls = new Set<ServerDuplexStream<Buffer, Buffer>>()
  readonly port: number
  /** all enabled MetricSources, as bytes; none: nothing is said */
  sources: readonly Uint8Array[] = []
  intervalSeconds = 0
  registrations = 0
  /** batches without custom resources */
  rounds = 0
  /** the newest of each source */
  readonly collections = new Map<string, ReceivedCollection>()

  private constructor(server: Server, port: number) {
    this.#server = server
    this.port = port
  }

  static async open(at = 0): Promise<OriginalHub> {
    const server = new Server({ 'grpc.max_receive_message_length': 4 * 2 ** 20 })
    const bytes = (buffer: Buffer) => buffer
    const format = { requestSerialize: bytes, requestDeserialize: bytes, responseSerialize: bytes }
    const path = '/clusterpulse.collector.v1.CollectorService/Connect'
    const method = { path, requestStream: true, responseStream: true, ...format, responseDeserialize: bytes }
    const serve: { take?: (call: ServerDuplexStream<Buffer, Buffer>) => void } = {}
    const Connect = (call: ServerDuplexStream<Buffer, Buffer>) => serve.take?.(call)
    server.addService({ Connect: method }, { Connect })
    const port = await new Promise<number>((resolve, reject) => {
      server.bindAsync(`127.0.0.1:${at}`, ServerCredentials.createInsecure(), (error, bound) =>
        error ? reject(error) : resolve(bound),
      )
    })
    const hub = new OriginalHub(server, port)
    serve.take = (call) => hub.#serve(call)
    return hub
  }

  /** Ends every stream; agents come again, and hear anew. */
  cut(): void {
    for (const call of this.#calls) call.end()
    this.#calls.clear()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.forceShutdown()
  }

  #serve(call: ServerDuplexStream<Buffer, Buffer>): void {
    this.#calls.add(call)
    const say = (message: object) => call.write(Buffer.from(Response.encode(Response.fromObject(message)).finish()))
    call.on('error', () => this.#calls.delete(call)) // the agent went: a stream that ended
    call.on('end', () => call.end())
    call.on('data', (bytes: Buffer) => {
      const request = Request.decode(bytes) as unknown as { register?: object; metrics?: OriginalBatch }
      if (request.register) {
        this.registrations++
        const config = { metricSourcesJson: this.sources, defaultIntervalSeconds: this.intervalSeconds }
        if (this.sources.length > 0) say({ config })
      } else if (request.metrics) {
        this.#store(request.metrics)
        say({ ack: { batchId: request.metrics.batchId, success: true } })
      }
    })
  }

  #store({ customResources = [] }: OriginalBatch): void {
    if (customResources.length === 0) this.rounds++
    for (const { sourceId, resourceCount, resources = [], aggregationValues = {} } of customResources)
      this.collections.set(sourceId, {
        count: resourceCount,
        values: Object.fromEntries(
          resources.map(({ id, valuesJson }) => [id, JSON.parse(valuesJson.toString('utf8')) as unknown]),
        ),
        aggregations: aggregationValues,
      })
  }
}
