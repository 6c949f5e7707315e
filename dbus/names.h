/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The names of the bus contract, for prismd and prismctl alike. What they mean stands in org.prism.Prism1.xml. */
#pragma once

#define PRISM_BUS_NAME "org.prism.Prism1"
#define PRISM_PATH "/org/prism/Prism1"
#define PRISM_TARGET_PREFIX PRISM_PATH "/target"
#define PRISM_RECORDING_PREFIX PRISM_PATH "/recording"

#define PRISM_INTERFACE_MANAGER PRISM_BUS_NAME ".Manager"
#define PRISM_INTERFACE_TARGET PRISM_BUS_NAME ".Target"
#define PRISM_INTERFACE_RECORDING PRISM_BUS_NAME ".Recording"

#define PRISM_ERROR_NO_SUCH_PROCESS PRISM_BUS_NAME ".Error.NoSuchProcess"
#define PRISM_ERROR_NO_SUCH_CGROUP PRISM_BUS_NAME ".Error.NoSuchCgroup"
#define PRISM_ERROR_NO_SUCH_UNIT PRISM_BUS_NAME ".Error.NoSuchUnit"
#define PRISM_ERROR_ALREADY_TRACKED PRISM_BUS_NAME ".Error.AlreadyTracked"
#define PRISM_ERROR_ALREADY_EXISTS PRISM_BUS_NAME ".Error.AlreadyExists"
#define PRISM_ERROR_NOT_FOUND PRISM_BUS_NAME ".Error.NotFound"
#define PRISM_ERROR_LIMIT_REACHED PRISM_BUS_NAME ".Error.LimitReached"
#define PRISM_ERROR_UNSUPPORTED PRISM_BUS_NAME ".Error.Unsupported"
#define PRISM_ERROR_STORE_FAILED PRISM_BUS_NAME ".Error.StoreFailed"
#define PRISM_ERROR_INVALID_ARGS "org.freedesktop.DBus.Error.InvalidArgs"
#define PRISM_ERROR_ACCESS_DENIED "org.freedesktop.DBus.Error.AccessDenied"

/* Where prismd listens without --address, and where prismctl looks last. */
#define PRISM_DEFAULT_ADDRESS "unix:path=/run/prism/bus"
#define PRISM_DEFAULT_STATE_DIR "/var/lib/prism"
#define PRISM_DATABASE_FILE "prism.db"
