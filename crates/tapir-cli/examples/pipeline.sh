#!/bin/sh
# A speech recogniser in front of tapir, in a shell: hypotheses go in as JSON lines, labels come out as they change.
#
#   cargo build -p tapir-cli && TAPIR=target/debug/tapir sh crates/tapir-cli/examples/pipeline.sh
set -eu

# What a recogniser would send: each line is all that it has understood so far. Its third guess takes a word back.
recogniser() {
    printf '%s\n' \
        '{"update": ["play"]}' \
        '{"update": ["play", "some", "chess"]}' \
        '{"update": ["play", "some", "jazz"]}' \
        '{"update": ["play", "some", "jazz", "by", "miles"]}' \
        '{"update": ["play", "some", "jazz", "by", "miles", "davis"]}' \
        '{"finish": true}'
}

# Every answer is one line, flushed at once: any tool that reads lines can follow. The last one has the labels.
recogniser | "${TAPIR:-tapir}" stream | while read -r answer; do
    labels=$(printf '%s' "$answer" | sed -n 's/.*"labels":\[\([^]]*\)\].*/\1/p')
    if [ -n "$labels" ]; then
        echo "final: $labels"
    else
        edits=$(printf '%s' "$answer" | grep -o '"position":[0-9]*,"label":"[^"]*"' | tr -d '"' | tr '\n' ' ')
        echo "edits: $edits"
    fi
done
