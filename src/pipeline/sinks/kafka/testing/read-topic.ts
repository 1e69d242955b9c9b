import { Kafka, logLevel } from 'kafkajs'
import type { ReadMessage } from '../../events/testing/event-reader.ts'

/** A message as it stands in a topic. */
export interface TopicMessage extends ReadMessage {
  readonly key: string
  readonly partition: number
}

let groups = 0

/** All that is in a topic at this moment, partition by partition; a topic that is not there is empty. */
export async function readTopic(address: string, topic: string): Promise<readonly TopicMessage[]> {
  const kafka = new Kafka({ clientId: 'reader', brokers: [address], logLevel: logLevel.NOTHING })
  const admin = kafka.admin()
  await admin.connect()
  try {
    if (!(await admin.listTopics()).includes(topic)) return []
    const ends = await admin.fetchTopicOffsets(topic)
    const waiting = new Set(
      ends.filter(({ high, low }) => Number(high) > Number(low)).map(({ partition }) => partition),
    )
    if (waiting.size === 0) return []
    return await readUntil(kafka, topic, new Map(ends.map(({ partition, high }) => [partition, Number(high)])), waiting)
  } finally {
    await admin.disconnect()
  }
}

async function readUntil(kafka: Kafka, topic: string, ends: ReadonlyMap<number, number>, waiting: Set<number>) {
  const consumer = kafka.consumer({ groupId: `reader-${process.pid}-${++groups}`, maxWaitTimeInMs: 100 })
  const messages: (TopicMessage & { readonly offset: number })[] = []
  try {
    await consumer.connect()
    await consumer.subscribe({ topic, fromBeginning: true })
    await new Promise<void>((resolve, reject) => {
      consumer
        .run({
          eachBatch: async ({ batch }) => {
            const { partition } = batch
            for (const { key, value, headers = {}, offset } of batch.messages)
              messages.push({
                key: String(key),
                partition,
                offset: Number(offset),
                header: (name) => String(headers[name] ?? ''),
                body: String(value),
              })
            if (Number(batch.lastOffset()) >= (ends.get(partition) ?? 0) - 1) waiting.delete(partition)
            if (waiting.size === 0) resolve()
          },
        })
        .catch(reject)
    })
  } finally {
    await consumer.disconnect()
  }
  return messages.sort((a, b) => a.partition - b.partition || a.offset - b.offset)
}
