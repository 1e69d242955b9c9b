/**
 * What machines subscribe to: nodes and containers of every cluster, published to NATS JetStream as protobuf every few seconds.
 *
 *   state ──(tick of a cluster)──▶ lane of a subject ──▶ parts of ≤ 512 KiB ──▶ JetStream, with a message id
 *                                  newest tick alone                           link: connect, ensure the stream, again
 *
 * Beside everything else: collection, state and the API never wait for NATS. Messages: proto/cluster/events.proto; for who
 * consumes them: docs/guide/nats.md.
 */
export { ClusterPublisher, type PublisherOptions } from './publisher.ts'
