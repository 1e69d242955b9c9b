#!/usr/bin/env bash
# Gathers a Kafka broker with all it needs from Maven Central into a folder: what KAFKA_ASSETS names. Usage: fetch-kafka.sh FOLDER
set -euo pipefail
mkdir -p "$1"
out=$(cd "$1" && pwd)
version=3.9.1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>clusterpulse</groupId>
  <artifactId>kafka</artifactId>
  <version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>$version</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>$version</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-reload4j</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
POM
mvn --batch-mode --quiet --file "$work/pom.xml" -Dmaven.repo.local="$work/repository" \
  dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$work/jars"
install -m 0644 "$work"/jars/*.jar "$out/"
