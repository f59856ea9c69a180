# rollerc_add_kernel(TARGET EXPR file.te DEVICE name|file.yaml [NAME name] [DEFINES N=4096 …] [OPTIONS --math=fast …] [VERIFY])
#
# Compiles a tensor expression to NAME.cu and NAME.h (NAME: the expression's stem) in the build folder, adds the .cu to the
# sources of TARGET and the header to what it and who links it may include. Both are made again when the expression, a device
# file, a template (OPTIONS --templates DIR) or rollerc changes, and only then. With VERIFY a kernel is proven on the CPU before it
# is written: a wrong one fails the build.
#
# The project must compile CUDA (HIP for AMD's devices), TARGET does so for the architecture of DEVICE, whatever
# CMAKE_CUDA_ARCHITECTURES says: no kernel runs on an older one. Kernels for several architectures go into a library each.

# What a device's kernels are compiled as: CUDA 90a, HIP gfx906.
function(_rollerc_ask_device device language architecture)
  get_target_property(rollerc Rollerc::rollerc LOCATION)
  execute_process(COMMAND "${rollerc}" --print-arch "${device}" RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE error
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "rollerc_add_kernel: DEVICE ${device}: ${error}")
  endif()
  if(said MATCHES "^sm_(.+)$")
    set(${language} CUDA PARENT_SCOPE)
    set(${architecture} "${CMAKE_MATCH_1}" PARENT_SCOPE)
  else()
    set(${language} HIP PARENT_SCOPE)
    set(${architecture} "${said}" PARENT_SCOPE)
  endif()
endfunction()

# Without its language CMake would leave a source out in silence, and the target would not link.
function(_rollerc_use_language target device language architecture)
  get_property(enabled GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(NOT language IN_LIST enabled)
    list(REMOVE_ITEM enabled NONE)
    list(JOIN enabled " " enabled)
    message(FATAL_ERROR "rollerc_add_kernel(${target} …): kernels for ${device} are ${language}, which this project does not compile. "
                        "Write project(${PROJECT_NAME} LANGUAGES ${enabled} ${language}), or enable_language(${language}) before.")
  endif()
  get_target_property(other ${target} ROLLERC_${language}_ARCHITECTURE)
  if(other AND NOT other STREQUAL architecture)
    message(FATAL_ERROR "rollerc_add_kernel(${target} …): ${target} has kernels for architecture ${other}, and ${device} is of "
                        "${architecture}. Give each a library of its own, add_library(${target}_${architecture} STATIC), and link them.")
  endif()
  set_target_properties(${target} PROPERTIES ROLLERC_${language}_ARCHITECTURE "${architecture}"
                                             ${language}_ARCHITECTURES "${architecture}")
endfunction()

function(rollerc_add_kernel target)
  cmake_parse_arguments(PARSE_ARGV 1 kernel "VERIFY" "EXPR;DEVICE;NAME" "DEFINES;OPTIONS")
  if(kernel_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "rollerc_add_kernel: what is '${kernel_UNPARSED_ARGUMENTS}'?")
  endif()
  foreach(needed EXPR DEVICE)
    if(NOT kernel_${needed})
      message(FATAL_ERROR "rollerc_add_kernel(${target} …) needs ${needed}")
    endif()
  endforeach()
  if(NOT kernel_NAME)
    get_filename_component(kernel_NAME "${kernel_EXPR}" NAME_WE)
  endif()
  get_filename_component(expression "${kernel_EXPR}" ABSOLUTE)
  set(device "${kernel_DEVICE}")
  set(inputs "${expression}")   # beside the dependency file, which make forgets when CMake configures again
  if(device MATCHES "/|\\.yaml$")   # a file, as rollerc tells it
    get_filename_component(device "${device}" ABSOLUTE)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${device}")   # its architecture
    list(APPEND inputs "${device}")
  endif()
  if(kernel_OPTIONS MATCHES "(^|;)--templates[=;]([^;]+)")
    get_filename_component(templates "${CMAKE_MATCH_2}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")   # where rollerc runs
    file(GLOB_RECURSE templates "${templates}/*")
    list(APPEND inputs ${templates})
  endif()
  _rollerc_ask_device("${device}" language architecture)
  _rollerc_use_language(${target} "${kernel_DEVICE}" ${language} "${architecture}")
  list(TRANSFORM kernel_DEFINES PREPEND "-D")

  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}.kernels")
  file(MAKE_DIRECTORY "${folder}")
  set(path "${folder}/${kernel_NAME}")
  # What stays the same keeps its time, so that nothing is compiled again for it; the stamp says that it is up to date.
  add_custom_command(
    OUTPUT "${path}.stamp"
    BYPRODUCTS "${path}.cu" "${path}.h"
    COMMAND Rollerc::rollerc "${expression}" --device "${device}" --name "${kernel_NAME}" ${kernel_DEFINES} ${kernel_OPTIONS}
            $<$<BOOL:${kernel_VERIFY}>:--verify> -q -o "${path}.cu" --emit "header=${path}.h" -MD -MF "${path}.d"
            -MT "${path}.stamp"
    COMMAND "${CMAKE_COMMAND}" -E touch "${path}.stamp"
    DEPENDS ${inputs} Rollerc::rollerc
    DEPFILE "${path}.d"
    COMMENT "Constructing ${kernel_NAME} for ${kernel_DEVICE}"
    COMMAND_EXPAND_LISTS VERBATIM)
  set_source_files_properties("${path}.cu" PROPERTIES LANGUAGE ${language})
  target_sources(${target} PRIVATE "${path}.stamp" "${path}.cu" "${path}.h")
  target_include_directories(${target} PUBLIC "$<BUILD_INTERFACE:${folder}>")
endfunction()
